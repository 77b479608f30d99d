"""Give an alarm on the terminal, to a webhook, to a command, with advice; what is slow or fails blocks nothing."""

import os
import re
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from loadframe.errors import UserError
from loadframe.formats.json_text import write_json
from loadframe.host.environment import NO_FOLDER, environment, python
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.host.to_its_end import until_end
from loadframe_watch.records import WatchAlarm, WatchPlan

WITHIN_S = 60.0
AGAIN_S = (10.0, 60.0, 300.0, 1800.0)
"""Pauses (s) after which a webhook that does not take an alarm is tried again."""
LONGEST_SAID = 4000
"""Bytes of a line: a pipe that accepts anything accepts this much at once (POSIX's PIPE_BUF)."""
MOST_SAID = 1 << 16
"""Bytes read of a command's stderr."""
VARIABLE = re.compile(r"\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")
NOT_PLAIN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""As cli/terminal.py, and the line feed: one line is one message."""


def say(text: str) -> None:
    """Write to stderr; a line that is not taken at once is lost: a stopped terminal blocks nothing."""
    plain = NOT_PLAIN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    try:
        if select.select([], [2], [], 0)[1]:
            os.write(2, plain.encode("utf-8", "backslashreplace")[:LONGEST_SAID] + b"\n")
    except (OSError, ValueError):  # closed or full; the day file has it
        return


class Alarms:
    """failed: called with a sentence where an alarm was not taken. again_s: pauses between tries of a webhook."""

    def __init__(self, plan: WatchPlan, failed: Callable[[str], None], *, again_s: Sequence[float] = AGAIN_S) -> None:
        self._plan, self._failed, self._again_s = plan, failed, again_s
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()

    def give(self, alarm: WatchAlarm, record: Mapping[str, Any]) -> None:
        say(in_words(alarm))
        if self._plan.webhook:
            self._begin(lambda: self._post(record), self._again_s)
        if command := [*self._plan.command]:
            self._begin(lambda: self._hand_over(command, write_json(record).encode() + b"\n", "the command"))

    def wait(self) -> None:
        """Wait for all alarms given, without further pauses."""
        self._ending.set()
        for thread in self._threads:
            thread.join(WITHIN_S)
        self._threads = []

    def _begin(self, work: Callable[[], None], again_s: Sequence[float] = ()) -> None:
        def guarded() -> None:
            for pause_s in (*again_s, None):
                try:
                    work()
                except UserError as error:
                    why = error.fact
                except (OSError, subprocess.SubprocessError) as error:
                    why = str(error) or type(error).__name__
                else:
                    return
                again = pause_s is not None and not self._ending.is_set()
                self._failed(f"{why}; it is tried again after {pause_s:g} s" if again else why)
                if not again or self._ending.wait(pause_s):
                    return

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _post(self, record: Mapping[str, Any]) -> None:
        order = {"url": filled(self._plan.webhook), "owner": self._plan.webhook_owner, "alarm": record}
        command = python("loadframe_watch.child", "post")
        self._hand_over(command, write_json(order).encode(), "the webhook")

    def _hand_over(self, command: list[str], data: bytes, receiver: str) -> None:
        process = spawn(
            command, Allowance(US), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            cwd=NO_FOLDER, env=environment(),
        )  # fmt: skip
        assert process.stdin is not None and process.stderr is not None, "asked for"
        until_s = time.monotonic() + WITHIN_S
        try:
            with suppress(BrokenPipeError):  # its exit status decides
                os.write(process.stdin.fileno(), data)
            process.stdin.close()
            said = until_end(process.stderr, until_s, MOST_SAID)
            process.stderr.close()
            process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{receiver} did not take the alarm within {WITHIN_S:g} s", remedy="Correct it.") from error
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        if process.returncode != 0:
            words = " ".join(said.decode("utf-8", "replace").split())[-200:]
            raise UserError(f"{receiver} did not take the alarm: {words or process.returncode}", remedy="Correct it.")


def filled(text: str) -> str:
    """The text with the values of {ENV:NAME}. UserError for a variable that is not set."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise UserError(f"the variable {match[1]} is not set", remedy="Set it before the watch begins.")
        return os.environ[match[1]]

    return VARIABLE.sub(value, text)


def in_words(alarm: WatchAlarm) -> str:
    parts = [f"ALARM {alarm.alarm}: {alarm.title}."]
    if alarm.ends_s is not None and alarm.ends_s.get("value") is not None:
        value, low, high = (alarm.ends_s.get(name) for name in ("value", "low", "high"))
        between = f" ({_moment(low)} to {_moment(high)})" if low is not None else ""
        parts.append(f"Expected {_moment(value)}{between}.")
    parts += [f"{str(entry['text'])[:200]}." for entry in alarm.evidence]
    parts += alarm.advice[:2]
    return " ".join(parts)


def _moment(at_s: float | None) -> str:
    if at_s is None or at_s > 4e9:
        return "much later"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))


def printed(text: str) -> int:
    """1 where that fails, else 0."""
    try:
        print(text, flush=True)
    except (OSError, ValueError) as error:
        say(f"Cannot write the answer to standard output: {getattr(error, 'strerror', None) or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python's flush at exit fails, with exit code 120
        return 1
    return 0


OF_MYSQL = ("mariadb", "mysql")
ADVICE: Mapping[str, tuple[str, ...]] = {
    "leak.target.memory.rss": (
        "Plan a restart before that hour; it begins again at its starting size.",
        "A cache without a bound grows like this: lower its size, or flush it, and see whether memory is given back.",
    ),
    "leak.target.open_files": (
        "Look at what stays open: `ls -l /proc/PID/fd`.",
        "Raising the limit (LimitNOFILE, ulimit -n) only puts the hour off.",
    ),
    "leak.system.filesystem.space": (
        "Find what grows: `du -x --max-depth=2` on that file system, twice an hour apart.",
    ),
    "change.response": (
        "Compare what was changed at that time: a deployment, a setting, the size of the data.",
        "`loadframe investigate` on a copy of the service names the cause.",
    ),
    "change.cpu": (
        "Compare what was changed at that time: a deployment, a setting, the mix of requests.",
    ),
    "unit-fails": ("See the service's own log; each error stands in the day file.",),
    "absent": ("See the service's own log. The watch goes on, and finds it once it is back.",),
    **{f"{kind}.table_open_cache": (
        "Raise table_open_cache while there is room (SET GLOBAL, and the configuration file); each cached table takes "
        "up to two open files, so look at the limit of open files of its process first.",
    ) for kind in OF_MYSQL},
    **{f"{kind}.max_connections": (
        "Raise max_connections, or let fewer clients connect at a time (a pool).",
    ) for kind in OF_MYSQL},
    "process.open_files": (
        "Raise LimitNOFILE of the unit (or ulimit -n) and start the service again.",
    ),
}  # fmt: skip
"""Advice by the id of a limit, or the kind of an alarm with its subject."""
OTHERWISE = (
    "`loadframe limits` shows all limits and what asks for this one.",
    "`loadframe investigate` on a copy of the service proves which change moves it.",
)


def alarm_of(
    alarm: str,
    about: str,
    title: str,
    *evidence: tuple[str, str, float | None],
    at_load: Mapping[str, float] | None = None,
    ends_s: Mapping[str, float | None] | None = None,
) -> WatchAlarm:
    """As WatchAlarm, with advice, general where nothing is known of this limit. evidence: sentence, metric and value of
    each."""
    sentences = tuple({"text": text, "metric": metric, "value": value} for text, metric, value in evidence)
    advice = next((ADVICE[name] for name in (f"{alarm}.{about}", alarm, about) if name in ADVICE), OTHERWISE)
    return WatchAlarm(alarm, about, title, sentences, advice, at_load, ends_s)
