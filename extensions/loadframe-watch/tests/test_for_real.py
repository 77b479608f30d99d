"""`loadframe watch` as it is installed, beside a process of the test's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.host.environment import python
from loadframe_watch.days import WatchLine, lines
from waiting import await_that

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
HEAVY = ("numpy", "polars", "scipy", "pydantic", "zstandard", "typer", "rich", "secrets")
TELLS = """
import sys
from loadframe_watch.daemon import main
code = main(sys.argv[1:])
print("MODULES", *sys.modules)
sys.exit(code)
"""
STUDY = """
[study]
name = "watched"
question = "Is it there?"
[target]
kind = "service"
pid = {pid}
listen = "127.0.0.1:{port}"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
budget = "10s"
[watch]
every = "1s"
"""
SERVICE = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer.allow_reuse_address = True
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def service() -> Iterator[tuple[int, int]]:
    """The pid and the port of a service that answers 503."""
    with running(sys.executable, "-c", SERVICE, "0") as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())


@pytest.mark.long
def test_a_failing_unit_of_work_ends_the_watch_with_exit_code_3_and_tells_a_command(
    tmp_path: Path, service: tuple[int, int]
) -> None:
    study, got = tmp_path / "study.toml", tmp_path / "got"
    study.write_text(STUDY.format(pid=service[0], port=service[1]))
    takes = f"{sys.executable} -c \"import sys; open('{got}', 'w').write(sys.stdin.read())\""
    done = subprocess.run(
        [LOADFRAME, "watch", str(study), "--interval", "1s", "--folder", str(tmp_path / "w"), "--exit-on-alarm",
         "--command", takes, "--json", "--for", "60s"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["ended"]) == ("loadframe.watch/1", "alarm")
    assert [one["alarm"] for one in answer["alarms"]] == ["unit-fails"]
    assert "ALARM unit-fails" in done.stderr
    assert json.loads(got.read_text())["schema"] == "loadframe.watch.alarm/1"
    failed = [line.data["error"] for line in lines(tmp_path / "w", kinds=("unit",))]
    assert len(failed) >= 3 and set(failed) == {"status 503"}  # they go on while the alarm is told


@pytest.mark.long
@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("streams", [">&-", ">/dev/full", ">&- 2>&-"])
def test_a_watch_whose_answer_is_not_taken_ends_with_1(tmp_path: Path, form: tuple[str, ...], streams: str) -> None:
    """And what it says does not go into a file that got the number of a stream that was closed."""
    words = (
        "watch",
        "--pid",
        str(os.getpid()),
        "--interval",
        "1s",
        "--for",
        "1s",
        "--folder",
        str(tmp_path / "w"),
        *form,
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {streams}', LOADFRAME, *words],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},  # it hides the end
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert ("Cannot write the answer to standard output: " in done.stderr) == ("2" not in streams)
    assert not [path for path in (tmp_path / "w").iterdir() if b"Ctrl-C ends it" in path.read_bytes()]


@pytest.mark.long
def test_a_watch_that_is_killed_goes_on_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    command = (LOADFRAME, "watch", "--pid", str(os.getpid()), "--interval", "1s", "--folder", str(folder))
    with running(*command) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Watching ")
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    done = subprocess.run([*command, "--for", "1s"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 gap, 0 alarms" in done.stdout
    found = list(lines(folder))
    assert [line.n for line in found] == list(range(1, found[-1].n + 1))
    assert [line.data["reason"] for line in found if line.kind == "gap"] == ["stopped"]
    samples = [line.data["values"] for line in found if line.kind == "sample"]
    assert samples and all(one["target.memory.rss"] > 1e6 for one in samples)


def following(folder: Path, process: subprocess.Popen[str], kind: str, holds: Callable[[WatchLine], bool]) -> WatchLine:
    """The first line of this kind of which that holds, once it is written."""
    return await_that(
        lambda: [line for line in lines(folder, kinds=(kind,)) if holds(line)],
        f"a line {kind}",
        of=process,
        pause_s=0.1,
    )[0]


@pytest.mark.long
def test_a_watcher_that_was_stopped_for_a_while_tells_of_the_gap_and_goes_on(tmp_path: Path) -> None:
    """SIGSTOP as a stand-in for a suspended machine, which no test may suspend."""
    folder = tmp_path / "w"
    with running(LOADFRAME, "watch", "--pid", str(os.getpid()), "--interval", "1s", "--folder", str(folder)) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Watching ")
        following(folder, process, "sample", lambda _: True)
        process.send_signal(signal.SIGSTOP)
        time.sleep(5)  # what is tested is this length
        process.send_signal(signal.SIGCONT)
        gap = following(folder, process, "gap", lambda _: True)
        assert gap.data["reason"] == "late" and gap.data["seconds"] >= 4
        following(folder, process, "sample", lambda line: line.n > gap.n + 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
    found = list(lines(folder))
    assert [line.n for line in found] == list(range(1, found[-1].n + 1))
    up = [line.up_s for line in found if line.kind == "sample"]
    assert len(up) == len(set(up))
    assert len(up) <= round(up[-1] - up[0] - gap.data["seconds"]) + 3  # ticks that were missed are not made up for


@pytest.mark.long
@pytest.mark.parametrize("by", ["study", "pid"])
def test_a_service_that_dies_and_comes_back_with_another_pid_is_found_again(tmp_path: Path, by: str) -> None:
    """By its port, or by its command line where only a pid was named."""
    folder, study = tmp_path / "w", tmp_path / "study.toml"
    with running(sys.executable, "-c", SERVICE, "0") as first:
        assert first.stdout is not None
        port = int(first.stdout.readline())
        first.kill()
    with running(sys.executable, "-c", SERVICE, str(port)) as first:
        assert first.stdout is not None
        first.stdout.readline()
        study.write_text(STUDY.format(pid=first.pid, port=port))
        what = [str(study)] if by == "study" else ["--pid", str(first.pid)]
        with running(LOADFRAME, "watch", *what, "--interval", "1s", "--folder", str(folder)) as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Watching ")
            following(folder, process, "sample", lambda line: "target.memory.rss" in line.data["values"])
            first.kill()
            first.wait()
            following(folder, process, "target", lambda line: line.data["pids"] == [])
            with running(sys.executable, "-c", SERVICE, str(port)) as second:
                back = following(folder, process, "target", lambda line: line.data["pids"] == [second.pid])
                gap = following(folder, process, "gap", lambda line: line.data["reason"] == "target absent")
                following(
                    folder, process, "sample",
                    lambda line: line.n > back.n and "target.memory.rss" in line.data["values"],
                )  # fmt: skip
            assert gap.data["seconds"] > 0
            process.send_signal(signal.SIGTERM)
            process.wait(20)
            assert process.stdout is not None
            closing = process.stdout.read()
    assert f" {second.pid}, before a restart {first.pid}" in closing  # seen: the first pid alone
    away = [line for line in lines(folder, kinds=("sample",)) if gap.data["from_s"] < line.at_s < gap.data["to_s"]]
    assert all("target.memory.rss" not in line.data["values"] for line in away)


@pytest.mark.long
def test_the_process_that_stays_is_light(tmp_path: Path, service: tuple[int, int]) -> None:
    plan = {
        "subject": "a service", "folder": str(tmp_path), "interval_s": 1.0, "every_s": 1.0, "for_s": 1.0,
        "find": {"listen": ["127.0.0.1", service[1]], "uids": [os.geteuid()] * 3}, "kinds": ["process", "service"],
        "load": "target.connections",
        "unit": {"form": "http", "host": "127.0.0.1", "port": service[1], "path": "/", "headers": [], "expect": 503},
        "sources": [{"form": "command", "command": ["echo", "jobs 7"], "select": [], "counters": []}],
        "as_json": True,
    }  # fmt: skip
    descriptor = os.memfd_create("plan", 0)
    os.write(descriptor, json.dumps(plan).encode())
    command = [*python("x")[:2], "-c", TELLS, str(descriptor)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, pass_fds=[descriptor])
    os.close(descriptor)
    assert done.returncode == 0, done.stderr
    answer, _, modules = done.stdout.partition("MODULES ")
    assert [name for name in HEAVY if name in modules.split()] == []
    assert json.loads(answer)["samples"] >= 1
    (first, *_) = lines(tmp_path, kinds=("sample",))
    assert first.data["values"]["service.jobs"] == 7


@pytest.mark.long
def test_it_ends_in_time_where_the_interval_is_longer(tmp_path: Path) -> None:
    command = [LOADFRAME, "watch", "--pid", str(os.getpid()), "--interval", "5m", "--for", "1s", "--json",
               "--folder", str(tmp_path / "watched")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["ended"] == "time" and 1 <= told["seconds"] < 30 and told["samples"] == 2
