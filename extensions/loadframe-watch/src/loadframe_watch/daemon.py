"""The lasting process: `python -P -m loadframe_watch.daemon DESCRIPTOR`, with a WatchPlan as JSON in that file. Light,
with all that it imports: no numpy, polars or pydantic (tests/test_for_real.py checks)."""

import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from loadframe.errors import RecordingError, TargetError, UserError
from loadframe.formats.json_text import JsonError, parse_json, write_json
from loadframe.host import identity
from loadframe.host.environment import NO_FOLDER, environment, python
from loadframe.host.privilege import (
    CAP_DAC_READ_SEARCH,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
    CAP_SYS_PTRACE,
    US,
    keep_only,
    leave_no_memory_behind,
)
from loadframe.host.processes import Allowance, spawn
from loadframe.host.signals import STOPPING
from loadframe.progress import counted
from loadframe.recording import snapshot_machine
from loadframe.recording.snapshot import Place, read, take
from loadframe.recording.socket_rows import FAMILIES, Asking, established, families_of
from loadframe_watch.alarms import printed, say
from loadframe_watch.find import Finder, Ports, run_by
from loadframe_watch.journal import Clocks, Journal
from loadframe_watch.ledger import Ledger, Part
from loadframe_watch.records import WatchPlan
from loadframe_watch.sampling import Look, Machine, Service, derived, metrics
from loadframe_watch.sources import Counters, DatabaseCounters, ExposedCounters
from loadframe_watch.unit import Unit, work_of
from loadframe_watch.watcher import Watcher

COUNTERS_SHARE, PART_SHARE, FIND_SHARE = 0.0004, 0.0001, 0.0005
"""Shares of a core that each may take; what costs more is read less often."""
THRIFTY_SHARE = 0.000025
"""Share for counters and the count of connections as long as they are read once a minute, the rows of the model."""
SLOWLY_S, MACHINE_S, LISTENERS_S = 60.0, 30.0, 600.0
"""Seconds between readings of slowly changing values, of the machine except its CPUs, and of the sockets' families."""
EARLY = 0.9
"""Share of an interval: what is due at each tick is also due at one that comes a little early."""
CONNECTIONS = "target.connections"
MOST_ANSWER = 1 << 20
CHILD_WITHIN_S = 600.0
"""A child takes seconds; one that hangs would block all later ones."""
CLOSED_WITHIN_S = 5.0
DONE, MUST_ACT, ALARM, INTERRUPTED = 0, 1, 3, 130
SPACE = "system.filesystem.space"
FILESYSTEMS = tuple(source for source in snapshot_machine.SOURCES if SPACE in source.metrics)


class RealReader:
    def __init__(self, plan: WatchPlan) -> None:
        self._plan = plan
        self._machine, self._service, self._finder = Machine(), Service(), Finder(plan.find)
        self._sources: list[Counters] = []
        self._ports, user = Ports(plan.port_users, plan.find), run_by(plan.find)
        if plan.server:
            self._sources.append(DatabaseCounters(plan.server, self._ports))
        listen = plan.find.get("listen")
        self._port = int(listen[1]) if listen else None
        self._sources += [ExposedCounters(source, self._port, self._ports, user) for source in plan.sources]
        self._last: dict[str | int, Look] = {}
        self._rest: dict[str, float] = {}
        each_tick_s, thrifty = EARLY * plan.interval_s, {"thrifty_share": THRIFTY_SHARE, "thrifty_s": SLOWLY_S}
        self._parts = {name: Part(SLOWLY_S, PART_SHARE) for name in ("states", "filesystems", "members")} | {
            "connections": Part(each_tick_s if plan.load == CONNECTIONS else SLOWLY_S, PART_SHARE, **thrifty),
            "machine": Part(each_tick_s if plan.load.startswith("system.") else EARLY * MACHINE_S, PART_SHARE),
            "find": Part(each_tick_s, FIND_SHARE),
        }
        self._pace = [Part(each_tick_s, COUNTERS_SHARE, **thrifty) for _ in self._sources]
        self._families: tuple[int, ...] = FAMILIES
        self._families_of, self._families_due_s = "", -math.inf
        self._asking = Asking()
        self._imported: set[int] = set()
        self._who = self._said = ""
        self._silent: set[str] = set()
        if plan.find or plan.server:
            self._look_for()

    def read(self, now_s: float) -> tuple[dict[str, float], bool]:
        """(metrics, whether the service is running). now_s: CLOCK_MONOTONIC."""
        look = Look(now_s)
        self._machine.look(look)
        if self._service.pids:
            self._parts["members"].run(now_s, self._look_for)
        there = self._service.look(look)
        if not there:
            there = bool(self._parts["find"].run(now_s, lambda: self._look_for() and self._service.look(look)))
        values = self._rates("service", look)
        for at in range(len(self._sources) if there or self._plan.server else 0):
            values |= self._counted(at, now_s)
        if not self._plan.find:  # no local process: running while its counters answer
            there = not self._silent
        rest = Look(now_s)
        if self._parts["machine"].run(now_s, lambda: self._machine.look_at_the_rest(rest)):
            self._rest = derived(self._rates("machine", rest))  # kept until the next: every sample has it
        values |= self._rest
        parts, port = self._parts, self._port
        if there:
            values |= parts["states"].run(now_s, self._service.states) or {}
        values |= parts["filesystems"].run(now_s, _filesystems) or {}
        if there and port is not None:
            values |= parts["connections"].run(now_s, lambda: self._connections(now_s, port)) or {}
        return values, there

    def pids(self) -> tuple[int, ...]:
        return self._service.pids

    def who(self) -> str:
        """Different after each start of its main process; "" while the service is not running."""
        return self._who

    def close(self) -> None:
        self._machine.close()
        self._service.close()
        self._asking.close()
        self._ports.close()
        for source in self._sources:
            source.close()

    def _look_for(self) -> bool:
        reported_pid = next((source.pid for source in self._sources if source.pid is not None), None)
        pids = self._finder.pids(reported_pid)
        if self._finder.words not in ("", self._said):
            say(self._finder.words)
        self._said = self._finder.words
        self._service.follow(pids)
        first = identity.identify(pids[0]) if pids else None
        self._who = "" if first is None else f"{first.pid} since {first.started_ticks}"
        return bool(pids)

    def _counted(self, at: int, now_s: float) -> dict[str, float]:
        part, source = self._pace[at], self._sources[at]
        if not part.due(now_s):
            return {}
        before_s = time.process_time() + _children_s()
        look = Look(now_s)
        try:
            source.look(look)
            self._silent.discard(source.words)
        except UserError as error:
            if source.words not in self._silent:  # report once, until it answers again
                self._silent.add(source.words)
                say(error.fact)
            self._last.pop(at, None)
            return {}
        finally:
            spent_s = time.process_time() + _children_s() - before_s
            part.cost(now_s, spent_s if at in self._imported else 0.0)  # the first reading imports what it needs
            self._imported.add(at)
        look.at_s = time.monotonic()
        return self._rates(at, look)

    def _rates(self, source: str | int, look: Look) -> dict[str, float]:
        before, self._last[source] = self._last.get(source), look
        return metrics(before, look)

    def _connections(self, now_s: float, port: int) -> dict[str, float]:
        try:
            if now_s >= self._families_due_s or self._who != self._families_of:  # so that only theirs are read
                self._families, self._families_of = families_of(port, asking=self._asking), self._who
                self._families_due_s = now_s + (SLOWLY_S if self._families == FAMILIES else LISTENERS_S)
            return {CONNECTIONS: float(established(port, self._families, asking=self._asking))}
        except RecordingError:  # a kernel without sock_diag
            self._port = None
            return {}


def _filesystems() -> dict[str, float]:
    look = take(Place(), FILESYSTEMS)
    return {name: value for name, value in read(look, look, FILESYSTEMS).values.items() if name == SPACE}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class RealChildren:
    """Short-lived processes, one at a time: at most one CPU. within_s: one that runs longer is killed, and reported."""

    def __init__(
        self,
        *,
        within_s: float = CHILD_WITHIN_S,
        command: Callable[..., list[str]] = lambda *words: python("loadframe_watch.child", *words),
    ) -> None:
        self._within_s, self._command = within_s, command
        self._until_s = math.inf
        self._process: subprocess.Popen[bytes] | None = None
        self._out: int | None = None
        self._before_s = self._spent_s = 0.0

    def fit(self, folder: Path, since_s: float) -> None:
        self._begin("fit", str(folder.absolute()), repr(since_s), out=True)

    def compact(self, file: Path) -> None:
        self._begin("compact", str(file.absolute()))

    def fitted(self) -> Mapping[str, Any] | None:
        """Once; None where a fit failed."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            if time.monotonic() >= self._until_s:  # reaped at a later tick, as it may not end at once
                self._until_s = math.inf
                say(
                    f"A child of the watch did not end within {self._within_s:g} s: it is killed; the next comes later."
                )
                self._process.kill()
            return None
        process, self._process = self._process, None
        self._spent_s = _children_s() - self._before_s
        descriptor, self._out = self._out, None
        if descriptor is None:
            return None
        try:
            text = os.pread(descriptor, MOST_ANSWER, 0)
        finally:
            os.close(descriptor)
        if process.returncode != 0:
            return None
        try:
            answer = parse_json(text)
        except JsonError:
            return None
        return answer if isinstance(answer, dict) else None

    def spent_s(self) -> float:
        return self._spent_s

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # blocked in the kernel; it ends later
                self._process.wait(CLOSED_WITHIN_S)

    def _begin(self, task: str, *arguments: str, out: bool = False) -> None:
        if self._process is not None:
            return
        self._before_s = _children_s()
        self._until_s = time.monotonic() + self._within_s
        self._out = os.memfd_create("loadframe-watch") if out else None
        try:
            self._process = spawn(
                self._command(task, *arguments), Allowance(US),
                stdout=self._out if self._out is not None else subprocess.DEVNULL, stderr=None, cwd=NO_FOLDER,
                env=environment(),
            )  # fmt: skip
        except UserError as error:  # tried again
            say(error.fact)
            if self._out is not None:
                os.close(self._out)
                self._out = None


class Signals:
    """They end the watch in order; those that were ignored at the start stay ignored."""

    def __init__(self) -> None:
        self.came = False
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on)

    def wait(self, seconds: float) -> bool:
        if not self.came:
            select.select([self._reading], [], [], seconds)
        return self.came

    def _on(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        os.write(self._writing, b".")


def give_up(plan: WatchPlan) -> None:
    """As root the watch goes on reading other users' /proc entries, and starts programs as the service's user. Programs
    that run as root, by the plan or root's alarm command, keep all privileges."""
    if plan.server or plan.webhook:  # a password, or a token
        leave_no_memory_behind()
    if os.geteuid() != 0:
        return
    commands = any(task.get("form") == "command" for task in (plan.unit, *plan.sources))
    user = run_by(plan.find)
    kept = [CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, *([CAP_SETUID, CAP_SETGID, CAP_KILL] if commands else [])]
    keep_only(kept, also_in_children=not plan.command and not (commands and user == US))


def run(plan: WatchPlan, signals: Signals) -> int:
    """Run the watch; its exit code. UserError."""
    clocks = Clocks()
    journal = Journal(Path(plan.folder), clocks)
    children, reader = RealChildren(), RealReader(plan)
    if plan.find and not reader.pids() and not plan.server:
        raise TargetError(f"{plan.subject} is not there", remedy="Start it, then watch it.")
    ports = Ports(plan.port_users, plan.find)  # for the unit's own thread
    unit = Unit(work_of(plan.unit, run_by(plan.find), ports), clocks) if plan.unit else None
    ledger = Ledger(plan.limits, plan.kinds)
    try:
        give_up(plan)
        watcher = Watcher(plan, journal, reader, children, ledger, clocks, unit, wait=signals.wait)
        say(f"Watching {plan.subject}; lines go to {plan.folder}. Ctrl-C ends it.")
        ended = watcher.run()
    finally:
        children.close()
        reader.close()
        journal.close()
    return _report(plan, watcher, ended)


def _report(plan: WatchPlan, watcher: Watcher, ended: str) -> int:
    code = ALARM if ended == "alarm" else INTERRUPTED if ended == "stopped" else DONE
    cost = watcher.cost()
    document = {
        "schema": "loadframe.watch/1", "folder": plan.folder, "subject": plan.subject, "ended": ended,
        "seconds": cost["elapsed_s"], "samples": watcher.samples, "gaps": watcher.gaps, "alarms": watcher.alarms,
        "model": watcher.known(), "cost": cost, "lost_lines": watcher.journal.lost_lines,
    }  # fmt: skip
    if plan.as_json:
        return max(code, printed(write_json(document)))
    cpu_s = cost["cpu_s"] + cost["children_cpu_s"]
    share = cpu_s / max(cost["elapsed_s"], 1e-9)
    text = (
        f"Watched {watcher.subject()} for {cost['elapsed_s']:.0f} s: {counted(watcher.samples, 'sample')}, "
        f"{counted(watcher.gaps, 'gap')}, {counted(len(watcher.alarms), 'alarm')}. It took {cpu_s:.2f} s of CPU time "
        f"({share:.2%} of a core, its start included) and {cost['rss_bytes'] / 2**20:.0f} MiB. Day files: {plan.folder}"
    )
    if lost := watcher.journal.lost_lines:
        text += f". {counted(lost, 'line')} at its end could not be written there: is the disk full?"
    if unjudged := watcher.model.unjudged_words(document["model"]):
        text += f". {unjudged}"
    return max(code, printed(text))


def main(arguments: list[str]) -> int:
    """Exit code 0 after its time, 3 after an alarm that ends it, 130 after a signal, 1 with the reason on stderr."""
    signals = Signals()
    plan = None
    try:
        descriptor = int(arguments[0])
        plan = WatchPlan.of_record(parse_json(os.pread(descriptor, MOST_ANSWER, 0)))
        os.close(descriptor)
        return run(plan, signals)
    except UserError as error:
        say(str(error).replace("\n", " "))
        if plan is not None and plan.as_json:
            document = {"schema": "loadframe.error/1", "kind": type(error).__name__, "message": str(error),
                        "remedy": error.remedy}  # fmt: skip
            printed(write_json(document))
        return MUST_ACT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
