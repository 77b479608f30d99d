"""A server that is known by its address alone: asked, never changed, and elsewhere only with its owner's consent."""

from __future__ import annotations

import http.server
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import loadframe
from loadframe.bench.checking import check_study
from loadframe.errors import StudyError, TargetError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.kinds.url import kind as url
from loadframe.model import Endpoint, TargetState
from loadframe.study import parse
from loadframe.workloads import asking, registry
from loadframe.workloads import http as requests

STUDY = """
[study]
name = "site"
question = "How much does it serve?"
[target]
kind = "url"
[target.settings]
url = "{url}"
paths = "/one /two"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2, 4]
[measure]
warmup = "150ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "15s"
"""


class Site(http.server.SimpleHTTPRequestHandler):
    """Two pages, one that changes, one that grows, one with the names of the request's headers, one that breaks when it
    is asked for the third time, one without an end, one that is not there; HEAD is dropped without an answer."""

    protocol_version = "HTTP/1.1"
    asked = 0
    broken = 0
    hosts: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        Site.asked += 1
        Site.hosts.add(self.headers["Host"])
        if self.path == "/endless":
            self.trickle()
            return
        Site.broken += self.path == "/breaks"
        body = {
            "/one": b"one" * 500,
            "/two": b"two",
            "/now": f"{Site.asked:09}".encode(),
            "/more": b"m" * Site.asked,
            "/headers": " ".join(self.headers).encode(),
            "/breaks": b"page",
        }.get(self.path)
        self.send_response(404 if body is None else 500 if Site.broken > 2 else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        while True:
            try:
                self.wfile.write(b"data: one more\n\n")
            except OSError:  # whoever asked has gone
                return
            time.sleep(0.01)

    def do_HEAD(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Site, "broken", 0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_it_is_asked_and_left_as_it_is(site: str) -> None:
    target = url.UrlTarget()
    state = TargetState({"url": site, "paths": "/one"}, {})
    target.start(state)
    assert target.healthy() and target.pids() == () and target.counters() == {}
    assert target.effective() == {"url": site, "paths": "/one"}
    assert target.endpoint().attached
    target.apply(state)
    with pytest.raises(TargetError, match="changed"):
        target.apply(TargetState({"url": site, "paths": "/two"}, {}))
    target.stop()
    assert not target.healthy()
    with pytest.raises(TargetError, match="No server answers"):
        target.start(TargetState({"url": "http://127.0.0.1:1"}, {}))


@pytest.mark.long
@pytest.mark.server
def test_a_study_of_it_has_a_curve_and_says_what_it_cannot_see(site: str, tmp_path: Path) -> None:
    found = loadframe.investigate(parse(STUDY.format(url=site)), tmp_path)
    assert [point.load for point in found.rounds[0].curve.points] == [1, 2, 4]
    assert all(point.throughput > 0 for point in found.rounds[0].curve.points)
    assert url.UNSEEN in found.warnings
    assert "no process, no counter" in " ".join(loadframe.render_text(found, details=True).split())
    steps = loadframe.open_run(Path(found.run)).steps()
    assert sum(step.errors for step in steps) == 0
    assert not any(name.startswith("target.cpu") for step in steps for name in step.metrics)
    assert any("Loadframe's own process" in warning for warning in found.warnings)


@pytest.mark.long
@pytest.mark.server
def test_the_processes_behind_its_address_are_the_target(tmp_path: Path) -> None:
    """A site of a process of its own: what it uses is no stranger's, and nothing of it is changed."""
    command = [sys.executable, str(Path(__file__).with_name("serving.py")), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as site:
        try:
            assert site.stdout is not None
            port = site.stdout.readline().split()[-1]
            study = parse(STUDY.format(url=f"http://127.0.0.1:{port}").replace("/one /two", "/"))
            found = loadframe.measure(study, tmp_path)
            steps = loadframe.open_run(found.run).steps()
            target = url.UrlTarget()
            target.start(TargetState({"url": f"http://127.0.0.1:{port}"}, {}))
            assert target.pids() == (site.pid,)
            with pytest.raises(TargetError, match="changed"):
                target.apply(TargetState({"url": f"http://127.0.0.1:{port}"}, {"RLIMIT_NOFILE": 9}))
        finally:
            site.kill()
    seen = [step.metrics["target.cpu.cores"] for step in steps if "target.cpu.cores" in step.metrics]
    assert seen and min(seen) > 0, "a short window may have no sample on a crowded machine"
    assert url.UNSEEN not in found.warnings
    assert target.pids() == ()


@pytest.mark.server
def test_a_page_that_changes_or_is_not_there_is_refused(site: str) -> None:
    target = url.UrlTarget()
    for paths, words in (
        ("/one /now", 'different bytes each time.*\n.*checked = "length"'),
        ("/more", 'different lengths each time.*\n.*checked = "size"'),
        ("/nowhere", "status 404"),
    ):
        target.start(TargetState({"url": site, "paths": paths}, {}))
        with pytest.raises(TargetError, match=words):
            registry.make("http", {"checked": "bytes"}, Allowance(US)).install(target.endpoint())


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize(
    ("paths", "checked"), [("/one /now", "length"), ("/two /more", "status"), ("/one /now", "auto")]
)
def test_a_page_that_changes_is_loaded_where_that_much_of_it_is_not_checked(
    site: str, tmp_path: Path, paths: str, checked: str
) -> None:
    overrides = [f'target.settings.paths="{paths}"', f"workload.options.checked={checked}", "load.levels=[2]"]
    measured = loadframe.measure(parse(STUDY.format(url=site), overrides), tmp_path)
    steps = loadframe.open_run(measured.run).steps()
    assert steps and all(step.requests > 0 and step.errors == 0 for step in steps)
    assert requests.UNCHECKED["size" if checked == "auto" else checked] in measured.warnings


@pytest.mark.server
def test_a_status_is_checked_where_nothing_else_is(site: str, tmp_path: Path) -> None:
    overrides = ['target.settings.paths="/one /nowhere"', "workload.options.checked=status"]
    with pytest.raises(TargetError, match="/nowhere with status 404"):
        loadframe.measure(parse(STUDY.format(url=site), overrides), tmp_path)


@pytest.mark.server
def test_a_page_without_an_end_is_refused(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of it comes in time."""
    monkeypatch.setattr(asking, "WHOLE_S", 0.2)
    target = url.UrlTarget()
    target.start(TargetState({"url": site, "paths": "/endless"}, {}))
    with pytest.raises(TargetError, match=r"/endless: its answer has not ended after 0\.2 s"):
        registry.make("http", {"checked": "status"}, Allowance(US)).install(target.endpoint())


@pytest.mark.server
def test_a_page_is_learnt_as_wrk_asks_for_it(site: str) -> None:
    """A server may compress for whoever names no encoding, and not for whoever wants none."""
    endpoint = Endpoint("url", site.removeprefix("http://"))
    answer = asking.ask(endpoint, "/headers")
    assert (answer.status, answer.body) == (200, b"Host")


@pytest.mark.long
@pytest.mark.server
def test_a_name_that_moves_after_the_check_is_loaded_where_it_was_checked(
    site: str, names: Callable[..., None], tmp_path: Path
) -> None:
    """Another answer of the name server, after the one that was checked, sends nobody elsewhere: not the pages that are
    learnt, not wrk, which resolves names itself. The name stands in the header Host alone."""
    port = site.rpartition(":")[2]
    names("site.example", ("127.0.0.1",), ("203.0.113.7",))
    Site.hosts.clear()
    measured = loadframe.measure(parse(STUDY.format(url=f"http://site.example:{port}"), ["load.levels=[2]"]), tmp_path)
    assert all(step.requests > 0 and step.errors == 0 for step in loadframe.open_run(measured.run).steps())
    assert Site.hosts == {f"site.example:{port}"}


@pytest.mark.server
def test_a_server_that_breaks_later_is_told_by_its_status(site: str) -> None:
    target, workload = url.UrlTarget(), registry.make("http", {"checked": "status"}, Allowance(US))
    target.start(TargetState({"url": site, "paths": "/breaks"}, {}))
    Site.broken = 0
    workload.install(target.endpoint())
    with pytest.raises(TargetError, match="answers /breaks with status 500") as caught:
        workload.set_level(target.endpoint(), 1)
    assert "workload.options.checked" not in caught.value.remedy


def test_a_working_set_of_it_is_refused_before_anything_is_asked() -> None:
    """Of somebody else's server nobody can have more pages made."""
    text = STUDY.format(url="http://127.0.0.1:1")
    with pytest.raises(StudyError, match="cannot load a target of kind 'url' on the axis 'working_set'") as caught:
        check_study(parse(text, ["load.axis=working_set"]))
    assert "On these axes it can: concurrency, rate." in str(caught.value)
    with pytest.raises(StudyError) as caught:
        check_study(parse(text, ["target.kind=sqlite", "target.settings={}"]))
    assert caught.value.fact == "workload 'http' cannot load a target of kind 'sqlite'"
    assert re.search("It loads: nginx, nginx-cache, service,.* url, varnish\\.", str(caught.value))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "has no target.settings.url"),
        ({"url": "https://127.0.0.1"}, "TLS is not spoken"),
        ({"url": "http://127.0.0.1/x"}, "alone"),
        ({"url": "http://127.0.0.1:99999"}, "out of range"),
        ({"url": "http://127.0.0.1:0"}, "alone"),
        ({"url": "http://me:secret@127.0.0.1"}, "alone"),
        ({"url": "http://127.0.0.1/#top"}, "alone"),
        ({"url": "http://127.0.0.1", "paths": "/a b"}, "'b' is not a path"),
    ],
)
def test_what_is_no_address_is_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        url.check_settings(settings)
    assert words in str(caught.value)


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "option_file"),
    [("mariadb", "[client]\nhost = 192.0.2.1\n"), ("postgres", "[a]\nhost=127.0.0.1\nhostaddr=192.0.2.1\n")],
)
def test_a_server_to_attach_to_is_loaded_elsewhere_only_with_its_owners_consent(
    tmp_path: Path, kind: str, option_file: str
) -> None:
    account = tmp_path / "account"
    account.write_text(option_file)
    text = STUDY.replace('kind = "http"', 'kind = "oltp"').replace(
        'kind = "url"', f'kind = "{kind}"\nattach = "{{url}}"'
    )
    text = text.replace('[target.settings]\nurl = "{url}"\npaths = "/one /two"\n', "")
    for address in ("192.0.2.1", "192.0.2.1:5432"):
        with pytest.raises(StudyError, match="not this machine"):
            check_study(parse(text.format(url=address)))
    with pytest.raises(StudyError, match="not this machine"):
        check_study(parse(text.format(url=""), [f"target.option_file={account}"]))
        with pytest.raises(StudyError, match="not this machine"):
            loadframe.limits(study=parse(text.format(url=address)))
    if kind == "postgres":
        with pytest.raises(StudyError, match="several hosts"):
            check_study(parse(text.format(url="/nonexistent,192.0.2.1")))
    check_study(parse(text.format(url="192.0.2.1"), ["target.authorised=true", 'target.owner="who it belongs to"']))
    for address in ("127.0.0.1", "/run/none"):
        check_study(parse(text.format(url=address)))


@pytest.mark.extension("loadframe_caches")
def test_another_machine_is_loaded_only_with_its_owners_consent() -> None:
    text = STUDY.format(url="http://192.0.2.1")
    with pytest.raises(StudyError, match="not this machine"):
        check_study(parse(text))
    with pytest.raises(StudyError, match="not this machine"):
        check_study(parse(text, ["target.authorised=true"]))
    check_study(parse(text, ["target.authorised=true", 'target.owner="the operators of example.org"']))
    other = '[[alternative]]\nname = "other"\ntarget = { settings = { url = "http://192.0.2.7" } }\n'
    with pytest.raises(StudyError, match="cannot be changed"):
        check_study(parse(STUDY.format(url="http://127.0.0.1") + other))
    private = text.replace('kind = "url"', 'kind = "nginx"').replace(
        'url = "http://192.0.2.1"\npaths = "/one /two"\n', ""
    )
    beside = '[[alternative]]\nname = "other"\ntarget = { kind = "url", settings = { url = "http://192.0.2.7" } }\n'
    with pytest.raises(StudyError, match="an alternative of kind url"):
        check_study(parse(private + beside))
    with pytest.raises(StudyError, match="cannot be caged"):
        check_study(parse(STUDY.format(url="http://127.0.0.1") + '[cage]\nmemory = "1GiB"\n'))
