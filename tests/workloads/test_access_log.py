"""An access log is replayed as it came: each request, when it should begin, and nothing that the log does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from answering import Service, said, serving
from loadframe.errors import StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, Login, Request, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.arrivals import ARRIVALS
from loadframe.workloads.base import SendsRequests, Workload
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.http_driver import OUTCOMES
from loadframe_drivers import access_log

server = pytest.mark.server


def line(second: int, path: str = "/a", method: str = "GET", status: int = 200, fraction: str = "") -> str:
    return (
        f'1.2.3.4 - - [24/Nov/2026:12:00:{second:02d}{fraction} +0000] "{method} {path} HTTP/1.1" {status} 7 "-" "-"\n'
    )


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(lambda sent: said(b"hello", "404 Not Found" if sent.path == "/gone" else "200 OK")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


def made(folder: Path, *text: str, **options: SettingValue) -> Workload:
    """The workload that replays these lines."""
    log = folder.parent / "access.log"
    log.write_text("".join(text))
    return registry.make("access-log", {"file": str(log), "connections": 4, **options}, Allowance(US))


def drive(workload: Workload, endpoint: Endpoint, folder: Path, level: int, seconds: float) -> ProcessDriver:
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    driver = workload.start(endpoint, level, folder, seconds)
    assert isinstance(driver, ProcessDriver)
    try:
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


def notes(workload: Workload) -> str:
    assert isinstance(workload, SendsRequests)
    return " ".join(workload.notes())


@server
def test_each_request_is_sent_when_the_log_says_at_ten_times_the_speed(service: Service, folder: Path) -> None:
    text = [line(0, "/0", fraction=".000"), line(2, "/1?x=1", fraction=".500"), line(9, "/2", fraction=".000")]
    driver = drive(made(folder, *text), service.endpoint(), folder, 10, 1.0)
    requests = driver.requests()
    assert [sent.path for sent in service.sent if sent.headers["host"] == service.address][-3:] == [
        "/0",
        "/1?x=1",
        "/2",
    ]
    arrivals = np.fromfile(folder / ARRIVALS).reshape(-1, 3)[:3, 0]
    assert np.diff(arrivals) == pytest.approx([0.25, 0.65], abs=1e-3)
    begun = np.sort(requests.end_s - requests.latency_ms.astype(np.float64) / 1000)
    assert begun == pytest.approx(arrivals, abs=1e-3), "latencies count from the intended start"
    assert [OUTCOMES[code] for code in requests.outcome] == ["done"] * 3


@server
def test_a_log_that_is_shorter_than_a_step_begins_again(service: Service, folder: Path) -> None:
    text = [line(second, f"/{second}") for second in range(4) for _ in range(5)]
    requests = drive(made(folder, *text), service.endpoint(), folder, 8, 1.0).requests()
    asked = Counter(sent.path for sent in service.sent)
    assert asked["/0"] > 5 and len(requests) > 20


def test_requests_of_one_second_are_spread_over_it_by_the_seed(folder: Path) -> None:
    text = [line(0) for _ in range(200)] + [line(1)]

    def offsets(seed: int) -> np.ndarray:
        made(folder, *text)
        found = access_log.read_stretch(folder.parent / "access.log", 0, 60, seed, lambda one: "")
        return found.offsets_s

    first = offsets(1)
    assert np.all(np.diff(first) >= 0) and first[0] == 0
    assert np.ptp(first[:150]) > 0.4, "they do not arrive at one instant"
    assert np.array_equal(first, offsets(1)) and not np.array_equal(first, offsets(2))


@pytest.mark.long
@server
def test_what_would_change_data_is_left_out_unless_the_study_says_so(service: Service, folder: Path) -> None:
    text = [
        line(0),
        line(0, "/order", "POST"),
        line(0, "/a", "HEAD"),
        line(1),
        "nonsense\n",
        line(1, "/gone", status=404),
    ]
    workload = made(folder, *text)
    requests = drive(workload, service.endpoint(), folder, 4, 1.0).requests()
    assert {sent.method for sent in service.sent} == {"GET"}
    assert not requests.outcome.any(), "what was 404 in the log may be"
    told = notes(workload)
    assert "1 request was left out: POST, which changes data (workload.options.writes = true sends it)" in told
    assert "1 request was left out: HEAD, because wrk" in told
    assert "1 of 6 lines have no request that can be read" in told
    requests = drive(made(folder, *text, writes=True), service.endpoint(), folder, 4, 1.0).requests()
    assert ("POST", "/order", "0") in {(s.method, s.path, s.headers.get("content-length")) for s in service.sent}
    assert set(requests.operation) == {0, 1}


@server
def test_an_answer_that_was_none_in_the_log_is_an_error(service: Service, folder: Path) -> None:
    requests = drive(made(folder, line(0, "/gone"), line(0, "/a")), service.endpoint(), folder, 1, 1.0).requests()
    assert {OUTCOMES[code] for code in requests.outcome} == {"done", "wrong status"}


@server
def test_a_login_comes_before(service: Service, folder: Path) -> None:
    service.answer = lambda sent: said(b"", "200 OK", "Set-Cookie: s=1" if sent.path == "/login" else "X: y")
    workload = registry.make(
        "access-log",
        {"file": str(folder.parent / "access.log"), "connections": 2},
        Allowance(US),
        declared=Declared(login=Login((Request("login 1", "POST", "/login"),))),
    )
    (folder.parent / "access.log").write_text(line(0) * 9)
    drive(workload, service.endpoint(), folder, 2, 1.0)
    replayed = [sent for sent in service.sent if sent.path == "/a"][2:]
    assert replayed and {sent.headers["cookie"] for sent in replayed} == {"s=1"}


def test_only_the_minutes_that_are_asked_for_are_replayed(folder: Path) -> None:
    def at(minute: int, path: str) -> str:
        return f'- [24/Nov/2026:12:{minute:02d}:30 +0000] "GET {path} HTTP/1.1" 200 7\n'

    workload = made(folder, at(0, "/a"), at(5, "/b"), at(6, "/c"), at(9, "/d"), skip_minutes=4, minutes=3)
    assert "2 requests of" in notes(workload)


def test_the_stretch_of_a_large_log_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "MOST_REQUESTS", 50)
    told = notes(made(folder, *(line(n // 10, f"/{n}") for n in range(300))))
    assert "50 requests of" in told and "the stretch ends before 10 minutes, at 50 requests" in told
    monkeypatch.setattr(access_log, "MOST_REQUESTS", 10_000)
    monkeypatch.setattr(access_log, "MOST_DISTINCT_BYTES", 1 << 20)
    text = [line(0, f"/{n}{'x' * 4000}") for n in range(300)]
    assert "at 1 MiB of distinct paths" in notes(made(folder, *text))


REFUSED: dict[str, tuple[list[str], dict[str, SettingValue], str]] = {
    "no such file": ([], {"file": "/none"}, "cannot be read: No such file"),
    "a folder": ([], {"file": "/"}, "cannot be read"),
    "no line": ([], {}, "no request to replay"),
    "nothing that is sent": ([line(0, method="DELETE")], {}, "left out: 1 DELETE, which changes data"),
    "another part": ([line(0)], {"skip_minutes": 5}, "no request to replay"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_log_that_cannot_be_replayed_is_refused_before_anything_starts(folder: Path, case: str) -> None:
    text, options, why = REFUSED[case]
    workload = made(folder, *text, **options)
    assert isinstance(workload, SendsRequests)
    with pytest.raises(StudyError) as caught:
        workload.check_requests(running=False)
    assert why in caught.value.fact


def test_a_speed_at_which_no_driver_sends_is_refused(folder: Path) -> None:
    workload = made(folder, *(line(0, fraction=f".{n:03d}") for n in range(999)))
    assert workload.check_level(100) == 100
    with pytest.raises(StudyError, match=r"on the axis speed .* requests a second would begin"):
        workload.check_level(300)
