"""An alarm reaches the terminal, the webhook and the command, and what does not take it holds up nothing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from loadframe.errors import TargetError, UsageError, UserError
from loadframe.host.privilege import US
from loadframe_watch.alarms import Alarms, filled
from loadframe_watch.child import check_webhook
from loadframe_watch.days import lines
from loadframe_watch.records import WatchAlarm, WatchPlan
from loadframe_watch.sources import run
from watch_farm import Farm, watching

ALARM = WatchAlarm("absent", "target", "It\x1b[2J is not there", ({"text": "since 60 s", "metric": "t", "value": 60},))


class Receiver(ThreadingHTTPServer):
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.taken: list[tuple[str, Any]] = []


class Asked(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, json.loads(data)))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def give(capfd: pytest.CaptureFixture[str], **plan: Any) -> tuple[list[str], str]:
    """What was said of the delivery, and what stands on stderr."""
    failed: list[str] = []
    alarms = Alarms(WatchPlan("a farm", "x", **plan), failed.append)
    alarms.give(ALARM, ALARM.as_record())
    alarms.wait()
    return failed, capfd.readouterr().err


def test_the_terminal_gets_one_line_whatever_is_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    failed, said = give(capfd)
    assert not failed
    assert said == "ALARM absent: It\\x1b[2J is not there. since 60 s.\n"


def test_a_webhook_and_a_command_get_the_whole_alarm(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "s3cret")
    copies = (sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(tmp_path / "got"))
    with receiving() as server:
        url = f"http://127.0.0.1:{server.server_port}/alarm?token={{ENV:OUR_TOKEN}}"
        failed, _ = give(capfd, webhook=url, command=copies)
        assert not failed
        assert server.taken == [("/alarm?token=s3cret", json.loads(json.dumps(ALARM.as_record())))]
    assert json.loads((tmp_path / "got").read_text()) == json.loads(json.dumps(ALARM.as_record()))


@pytest.mark.parametrize("status", [302, 500])
def test_a_webhook_that_does_not_take_it_is_said_and_a_redirect_is_not_followed(
    capfd: pytest.CaptureFixture[str], status: int
) -> None:
    with receiving() as server:
        server.status = status
        failed, _ = give(capfd, webhook=f"http://127.0.0.1:{server.server_port}/alarm")
        assert len(server.taken) == 1
    (words,) = failed
    assert f"127.0.0.1 answered {status}" in words


def test_a_webhook_that_is_away_for_a_moment_gets_the_alarm_later(capfd: pytest.CaptureFixture[str]) -> None:
    """An alarm is given once: one that was lost would not come again."""
    failed: Queue[str] = Queue()
    with receiving() as server:
        server.status = 503
        plan = WatchPlan("a farm", "x", webhook=f"http://127.0.0.1:{server.server_port}/alarm")
        alarms = Alarms(plan, failed.put, again_s=(0.01, 30.0))
        alarms.give(ALARM, ALARM.as_record())
        for pause in ("0.01 s", "30 s"):
            said = failed.get(timeout=20)
            assert "answered 503" in said and said.endswith(f"; it is tried again after {pause}") and "\n" not in said
        alarms.wait()
        assert len(server.taken) == 2 and failed.empty()
        server.status = 200
        alarms.give(ALARM, ALARM.as_record())
        alarms.wait()
        assert len(server.taken) == 3 and failed.empty()


def test_a_command_that_fails_is_said_with_its_last_words(capfd: pytest.CaptureFixture[str]) -> None:
    failed, _ = give(capfd, command=(sys.executable, "-c", "raise SystemExit('no pager')"))
    assert failed == ["the command did not take the alarm: no pager"]
    failed, _ = give(capfd, command=("no-such-program-of-ours",))
    assert failed == ["Cannot run no-such-program-of-ours: No such file in PATH"]


ENDLESS = "import sys\nwhile True: {}.write('no ' * 20000)"


def test_a_command_that_never_stops_talking_does_not_fill_our_memory(capfd: pytest.CaptureFixture[str]) -> None:
    """The watch has 50 MiB, for weeks."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failed, _ = give(capfd, command=(sys.executable, "-c", ENDLESS.format("sys.stderr")))
    assert failed[0].startswith("the command did not take the alarm")
    with pytest.raises(TargetError, match="prints more than 1 MiB"):
        run([sys.executable, "-c", ENDLESS.format("sys.stdout")], US, within_s=5.0, most_bytes=1 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak + 64 * 1024


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://127.0.0.1/x", "takes http:// or https:// and a host"),
        ("http:///x", "takes http:// or https:// and a host"),
        ("http://127.0.0.1:99999/", "is no address"),
        ("http://me:secret@127.0.0.1/", "has an account in its address"),
        ("http://127.0.0.1/a b", "characters that no address has"),
        ("http://192.0.2.7/x", "is not this machine"),
    ],
)
def test_a_webhook_that_is_not_allowed_is_refused_before_anything_is_sent(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_webhook(url, "")


def test_another_machine_takes_who_has_authorised_it_and_a_token_its_variable() -> None:
    check_webhook("http://192.0.2.7/x", "the on-call team")
    with pytest.raises(UserError, match="NOT_SET_ANYWHERE is not set"):
        filled("http://127.0.0.1/{ENV:NOT_SET_ANYWHERE}")


def test_a_unit_of_work_that_fails_three_times_ends_a_watch_that_is_to_end_at_an_alarm(tmp_path: Path) -> None:
    farm = Farm(1, 100.0, error="status 503")
    with watching(farm, tmp_path, 10.0, exit_on_alarm=True, every_s=20.0) as watcher:
        assert watcher.run() == "alarm"
    (alarm,) = lines(tmp_path, kinds=("alarm",))
    assert (alarm.data["alarm"], alarm.data["about"]) == ("unit-fails", "unit")
    assert alarm.data["try"]
    assert [line.data["error"] for line in lines(tmp_path, kinds=("unit",))] == ["status 503"] * 3
    assert [line.data["reason"] for line in lines(tmp_path, kinds=("end",))] == ["alarm"]


def test_a_unit_of_work_that_fails_now_and_then_gives_no_alarm(tmp_path: Path) -> None:
    farm = Farm(1, 100.0)
    with watching(farm, tmp_path, 10.0, every_s=10.0) as watcher:
        for number in range(30):
            farm.error = "status 503" if number % 3 else ""
            watcher.tick()
            farm.clocks.advance(10.0)
    assert watcher.alarms == []


def test_a_terminal_that_takes_nothing_holds_up_nothing() -> None:
    """Its reader was stopped, or Ctrl-S was pressed: what is said is lost, and the watch goes on."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    with suppress(BlockingIOError):
        os.write(writing, b"x" * (1 << 20))
        os.write(writing, b"x")
    os.set_blocking(writing, True)
    told = subprocess.run(
        [sys.executable, "-c", "from loadframe_watch.alarms import say; say('x'); print('went on')"],
        stdout=subprocess.PIPE, stderr=writing, timeout=20, check=True,
    )  # fmt: skip
    assert told.stdout == b"went on\n"
    os.close(reading)
    os.close(writing)
