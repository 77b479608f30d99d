"""Who is refused by the live page: everyone without its key, whatever they ask for and from wherever they come."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import pytest

from loadframe.reporting import html
from loadframe_live.shown import FILES

from .conftest import Served, serving

RUN = "0/20261101T000000Z-job-queue"
EVERYTHING = ("/api/runs", f"/api/runs/{RUN}", "/api/events", "/metrics")


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize("token", [None, "wrong", "x" * 4000])
def test_without_the_key_nothing_is_told(served: Served, path: str, token: str | None) -> None:
    answer = served.get(path, token=token)
    assert answer.status == 401
    assert b"job-queue" not in answer.body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1:1", "localhost", ""])
def test_another_name_of_the_host_is_refused(served: Served, host: str) -> None:
    assert served.get("/api/runs", Host=host).status == 403
    assert served.get("/", Host=host).status == 403


def test_the_two_names_of_this_host_are_answered(served: Served) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert served.get("/api/runs", Host=f"{host}:{served.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:1"])
def test_a_page_of_another_origin_is_refused(served: Served, origin: str) -> None:
    assert served.get("/api/runs", Origin=origin).status == 403
    assert served.get("/api/runs", Sec_Fetch_Site="cross-site").status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    assert served.get("/api/runs", method=method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/0/..",
        "/api/runs/0/%2e%2e",
        "/api/runs/0/..%2f..%2fetc",
        "/api/runs/0/%2fetc%2fpasswd",
        "/api/runs/1/20261101T000000Z-job-queue",
        "/api/runs/0/nothing",
        "/api/runs/0/.hidden",
        "/../../etc/passwd",
        "/live.py",
        "/app.py",
    ],
)
def test_a_path_outside_the_runs_is_not_found(served: Served, path: str) -> None:
    assert served.get(path).status == 404


def test_links_lead_nowhere(served: Served, tmp_path: Path) -> None:
    secret = tmp_path / "20261101T000000Z-secret"
    secret.mkdir()
    (secret / "run.json").write_text('{"schema":"loadframe.run/1","started_at":"secret"}')
    (served.folder / "20261102T000000Z-link").symlink_to(secret)
    inside = served.folder / "20261103T000000Z-inside"
    inside.mkdir()
    for name in ("run.json", "report.html"):
        (inside / name).symlink_to(secret / "run.json")
    try:
        listed = served.get("/api/runs").body
        assert b"-link" not in listed
        assert b"secret" not in listed
        assert served.get("/api/runs/0/20261102T000000Z-link").status == 404
        assert b"secret" not in served.get("/api/runs/0/20261103T000000Z-inside").body
    finally:
        (served.folder / "20261102T000000Z-link").unlink()


def test_a_report_needs_the_ticket_of_its_run_and_is_of_no_origin(served: Served) -> None:
    path = json.loads(served.get(f"/api/runs/{RUN}").body)["report"]
    answer = served.get(path, token=None)
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    ticket = path.split("/")[2]
    assert served.get(path.replace(ticket, "0" * len(ticket)), token=None).status == 401
    assert served.get(f"/report/{ticket}/0/20261103T000000Z-inside/", token=None).status == 401


@pytest.mark.long
def test_a_watch_is_given_no_address_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "farm").mkdir()
    head = {"n": 1, "up_s": 0.0, "kind": "head", "at_s": 1.8e9, "schema": "loadframe.watch/1", "subject": "the farm"}
    (tmp_path / "farm" / "2027-01-15.jsonl").write_text(json.dumps(head) + "\n", encoding="utf-8")
    with serving(tmp_path) as served:
        found = json.loads(served.get("/api/runs/0/farm").body)
    assert found["heading"]["subject"] == "the farm" and "report" not in found


def test_the_files_that_a_report_links_to_are_answered_as_data(served: Served) -> None:
    report = json.loads(served.get(f"/api/runs/{RUN}").body)["report"]
    own = served.folder / "20261101T000000Z-job-queue"
    (own / "metrics.parquet").write_bytes(b"PAR1" * 200_000)
    steps = served.get(f"{report}steps.jsonl", token=None, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
    assert steps.status == 200
    assert steps.body == (own / "steps.jsonl").read_bytes()
    assert steps.headers["Content-Type"].startswith("text/plain")
    assert steps.headers["Content-Security-Policy"].startswith("sandbox allow-downloads; default-src 'none'")
    assert steps.headers["X-Content-Type-Options"] == "nosniff"
    table = served.get(f"{report}metrics.parquet", token=None)
    assert table.body == b"PAR1" * 200_000
    assert table.headers["Content-Disposition"] == 'attachment; filename="metrics.parquet"'


@pytest.mark.parametrize(
    "name",
    ["run.json", "study.toml", "raw/host.lfr", "../20261101T000000Z-job-queue/steps.jsonl", "..%2fsteps.jsonl",
     "forecast.json", "%2fetc%2fpasswd", "profiles/../run.json", "steps.jsonl/"],
)  # fmt: skip
def test_no_other_file_of_a_run_is_answered(served: Served, name: str) -> None:
    report = json.loads(served.get(f"/api/runs/{RUN}").body)["report"]
    assert served.get(f"{report}{name}", token=None).status == 404


def test_a_file_of_a_report_needs_its_ticket_and_is_no_link(served: Served, tmp_path: Path) -> None:
    report = json.loads(served.get(f"/api/runs/{RUN}").body)["report"]
    ticket = report.split("/")[2]
    assert served.get(f"{report.replace(ticket, '0' * 64)}steps.jsonl", token=None).status == 401
    assert served.get(f"{report}steps.jsonl", token=None, Sec_Fetch_Site="cross-site").status == 403
    (tmp_path / "secret").write_text("secret")
    link = served.folder / "20261101T000000Z-job-queue" / "ladder.json"
    link.symlink_to(tmp_path / "secret")
    answer = served.get(f"{report}ladder.json", token=None)
    assert answer.status == 404
    assert b"secret" not in answer.body.replace(str(tmp_path).encode(), b"")


def test_every_file_that_a_report_names_can_be_answered() -> None:
    linked = {name for names in html.FILES.values() for name in names if "." in name}
    for module in resources.files("loadframe.reporting").iterdir():
        if module.name.endswith(".py"):
            linked |= set(re.findall(r'(?:\bto=|\bfile\()"(\w[\w/-]*\.\w+)"', module.read_text()))
    assert "metrics.parquet" in linked
    assert linked <= set(FILES)


def test_every_answer_says_what_a_browser_may_do_with_it(served: Served) -> None:
    answer = served.get("/", token=None)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert served.get("/api/runs", token=None).headers["Content-Security-Policy"] == policy


def test_prometheus_reads_the_runs_with_the_key(served: Served) -> None:
    answer = served.get("/metrics")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    text = answer.body.decode()
    assert text.endswith("# EOF\n")
    assert 'loadframe_run_info{run="20261101T000000Z-job-queue"' in text


def test_viewers_are_bounded(served: Served) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(served.asking("/api/events")) for _ in range(64)]
        assert {stream.status for stream in streams} == {200}
        refused = served.get("/api/events")
        assert refused.status == 503
        assert refused.headers["Retry-After"]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_someone_watches(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as server, server.asking("/api/events") as stream:
        assert stream.readline()
        server.process.send_signal(number)
        assert server.process.wait(timeout=20) == 0
