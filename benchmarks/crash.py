"""Killed at any moment, nothing stays changed: python benchmarks/crash.py [--kills N] [--kind mariadb|postgres]
[--only COMMAND]

A private server plays somebody else's: it has an account of theirs, data of theirs, and goes on. `loadframe compare`,
`ladder`, `tune`, and `tune` with a file of ours that the server is restarted for are run on it in turn, with a study
that changes the server's settings and those of a machine whose /proc is a folder, and are killed (-9): every other time
at a random moment, else within milliseconds of a change. A search that was killed between its trials is gone on with.
After each kill the next command (`loadframe report` of the killed run, or `changes revert`, as chance has it) has to
leave settings, schemas and data as they were, nothing in the state directory or beside the server's configuration,
every run folder readable, with what became of its changes in its journal, and the password nowhere.
Prints a line per miss, then how many kills of each command fell where; ends with 1 where anything was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import somebodys
from loadframe.bench.beside import START
from loadframe.changes import host
from loadframe.changes.journal import read
from loadframe.errors import UserError
from loadframe.runs.folder import RunFolder

MACHINE = {"vm/dirty_ratio": "20", "vm/dirty_bytes": "0", "vm/swappiness": "60"}
CHANGED = {
    "mariadb": "innodb_flush_log_at_trx_commit = 2, max_connections = 77",
    "postgres": 'synchronous_commit = "off", work_mem = "8MB"',
}
SEARCHED = {
    "mariadb": """\
innodb_flush_log_at_trx_commit = [0, 1, 2]
innodb_log_file_size = ["96M", "112M", "128M"]
innodb_buffer_pool_size = ["64M", "128M", "160M"]
thread_cache_size = [0, 16, 64]
innodb_log_buffer_size = ["16M", "32M"]
""",
    "postgres": """\
synchronous_commit = ["on", "off"]
work_mem = ["4MB", "8MB", "16MB"]
random_page_cost = [1.1, 2.0, 4.0]
shared_buffers = ["64MB", "128MB"]
""",
}
"""The last one of each needs a restart, and is left out."""
SEARCHED_BY_RESTART = {
    "mariadb": """\
innodb_log_buffer_size = ["16M", "32M"]
innodb_read_io_threads = [4, 8]
innodb_io_capacity = [200, 400]
""",
    "postgres": """\
shared_buffers = ["64MB", "128MB"]
max_wal_senders = [5, 10]
random_page_cost = [2.0, 4.0]
""",
}
"""The last one of each needs none."""
MORE = """\
blocks = {{ min = 2, max = 2 }}
budget = "60s"
[host.settings]
"vm.swappiness" = 10
[remedies]
allow = ["target", "host"]
durability = "relax"
[[alternative]]
name = "changed"
target = {{ settings = {{ {changed} }} }}
host = {{ settings = {{ "vm.dirty_ratio" = 5, "vm.swappiness" = 1 }} }}
[[change]]
name = "server"
target = {{ settings = {{ {changed} }} }}
[[change]]
name = "machine"
host = {{ settings = {{ "vm.dirty_ratio" = 5, "vm.swappiness" = 1 }} }}
[tune]
trials = {trials}
[tune.settings]
{searched}"""
TRIALS = 3
RESTARTING = "tune, restarting"
LONGEST_S = {"compare": 3.0, "ladder": 4.0, "tune": 5.0, RESTARTING: 10.0}
"""By command; random moments lie before this. The whole of each takes a little longer on two cores."""
MOST_CHANGES = 20
"""So many times the list of what is changed is written, at most, before a kill that waits for a change."""
SOON_S = 0.004
CHILD = "--as-the-command"


class Command:
    """A loadframe command that runs."""

    def __init__(self, commands: Commands, pid: int) -> None:
        self._commands = commands
        self._descriptor = os.pidfd_open(pid)

    def ended(self, within_s: float = 0.0) -> bool:
        """Whether it has ended by then."""
        return bool(select.select([self._descriptor], [], [], within_s)[0])

    def kill(self) -> None:
        """SIGKILL, for it alone."""
        with suppress(ProcessLookupError):  # it has just ended
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> tuple[int, str]:
        """Its exit status (minus the signal), and what it said."""
        status = self._commands.status()
        os.close(self._descriptor)
        return status, (self._commands.folder / "said").read_text()


class Commands:
    """Runs loadframe commands one at a time, each forked from a process that has imported everything: it begins at
    once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server = subprocess.Popen(
            [sys.executable, __file__, CHILD],
            cwd=folder,
            env={**os.environ, "LOADFRAME_STATE": str(folder / "state")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us alone
        )

    def start(self, *arguments: str) -> Command:
        """Of `loadframe` with these arguments."""
        assert self._server.stdin is not None
        print(json.dumps(arguments), file=self._server.stdin, flush=True)
        return Command(self, self.status())

    def status(self) -> int:
        """The next number that it says: of a process, then how that has ended."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """No more commands."""
        self._server.communicate()


def serve() -> None:
    """What Commands talks to: a list of arguments per line."""
    import altair  # noqa: F401 - so that no command has to

    from loadframe import lab  # noqa: F401
    from loadframe.cli import entry, main  # noqa: F401

    host.ROOT = Path.cwd() / "machine"
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(said, 1)
            os.dup2(said, 2)
            sys.argv = ["loadframe", *json.loads(line)]
            entry.main()
            return
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


@dataclass
class Scene:
    """The server and the machine. folder: of the studies and the runs. first: all that has to stay as it is, as it was
    in the beginning. go_on: killed searches with trials, by command."""

    owned: somebodys.Restartable
    folder: Path
    first: dict[str, Any] = field(default_factory=dict)
    go_on: dict[str, Path] = field(default_factory=dict)

    @property
    def server(self) -> somebodys.Server:
        return self.owned.server

    def prepare(self) -> None:
        """The machine, the studies."""
        for name, value in MACHINE.items():
            path = self.folder / "machine/proc/sys" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        kind = self.server.kind
        for name, study, searched in (
            ("study.toml", self.server.study(), SEARCHED),
            ("restarting.toml", self.owned.study(), SEARCHED_BY_RESTART),
        ):
            more = MORE.format(changed=CHANGED[kind], searched=searched[kind], trials=TRIALS)
            (self.folder / name).write_text(study + more)
        self.first = self.seen()

    def arguments(self, command: str) -> list[str]:
        """Of the command that is killed."""
        study = "restarting.toml" if command == RESTARTING else "study.toml"
        resume = ["--resume", str(self.go_on[command])] if command in self.go_on else []
        return [command.partition(",")[0], study, "--runs", "runs", *resume]

    def differences(self) -> list[str]:
        """What is not as it was in the beginning, in words."""
        now, told = self.seen(), list[str]()
        for name, value in self.first.items():
            if isinstance(value, dict):
                told += [
                    f"{key} was {value.get(key)}, is {now[name].get(key)}"
                    for key in sorted({*value, *now[name]})
                    if value.get(key) != now[name].get(key)
                ]
            elif now[name] != value:
                told.append(f"{name}: was {value}, is {now[name]}")
        return told

    def seen(self) -> dict[str, Any]:
        """All that has to stay as it is, once the server answers."""
        self.server.await_answer()
        ask = self.server.ask
        if self.server.kind == "mariadb":
            settings = ask("SHOW GLOBAL VARIABLES")
        else:
            ask("SELECT pg_sleep(0.2)")  # each connection reads the configuration when it comes to it
            files = "SELECT 'in the files: ' || name, setting FROM pg_file_settings"
            settings = ask(f"SELECT name, setting FROM pg_settings UNION ALL {files}")
        machine = {name: (self.folder / "machine/proc/sys" / name).read_text().split()[0] for name in MACHINE}
        return {
            "settings": {str(name): str(value) for name, value in settings},
            "machine": machine,
            "schemas": sorted(self.server.schemas()),
            "data": ask("SELECT id FROM theirs.precious"),
            "configuration": sorted(path.name for path in self.owned.config.parent.iterdir()),
            "state": sorted(path.name for path in self.folder.glob("state/*/*") if not path.name.endswith("lock")),
        }

    def standing(self) -> set[str]:
        """The settings that a killed command has left on its list."""
        lists = [json.loads(path.read_text()) for path in self.folder.glob("state/changes/*.json")]
        return {change["setting"] for each in lists for change in each["changes"]}

    def runs(self) -> list[Path]:
        """The run folders; a kill may come before there is one."""
        return sorted(path for path in self.folder.glob("runs/*") if (path / "run.json").exists())


def await_change(scene: Scene, running: Command, count: int, within_s: float) -> None:
    """Until the list of what is changed was written so often, or the command has ended, or the time is over."""
    seen: tuple[int, ...] = ()
    until = time.monotonic() + within_s
    while count > 0 and time.monotonic() < until and not running.ended(0.0005):
        now = tuple(path.stat().st_ino for path in (scene.folder / "state/changes").glob("*.json") if path.exists())
        count -= now != seen
        seen = now


def kill_once(
    scene: Scene,
    commands: Commands,
    command: str,
    chance: random.Random,
    longest_s: float,
    *,
    at_a_change: bool,
    report: bool,
) -> tuple[str, list[str]]:
    """One run that is killed before longest_s are over, and the command after it: where the kill fell, and what was
    missed. report: that command is its report, where it has measured enough for one."""
    before = scene.runs()
    running = commands.start(*scene.arguments(command))
    if at_a_change:
        await_change(scene, running, chance.randint(1, MOST_CHANGES), longest_s)
        running.ended(chance.uniform(0.0, SOON_S))
    else:
        running.ended(chance.uniform(0.0, longest_s))
    running.kill()
    status, said = running.wait()
    ended = status != -signal.SIGKILL
    missed = [f"the command failed by itself: {said}"] if ended and status != 0 else []
    names = scene.standing()
    stood = scene.differences()
    run = next((path for path in scene.runs() if path not in before), None)
    steps = RunFolder(run).steps() if report and run is not None else []
    reports = any(step.treatment == START and step.counts for step in steps)
    following = ["report", str(run)] if reports else ["changes", "revert", "--runs", "runs"]
    status, words = commands.start(*following).wait()
    missed += [f"{' '.join(following)} ended with {status}: {words}"] if status != 0 else []
    missed += [f"{name} (the command said: {words})" for name in scene.differences()]
    missed += [] if run is None else unreadable(run, scene.server.password, names)
    look_after(scene, command, run)
    where = "after its end" if ended else "while something was changed" if stood else "while nothing was changed"
    return where, missed


def unreadable(path: Path, password: str, stood: set[str]) -> list[str]:
    """What of a run folder cannot be read, holds the password, or does not say what became of what stood."""
    run, told = RunFolder.open(path), list[str]()
    try:
        run.steps(), run.treatments(), run.tuning_trials(), run.ladder()
        journal = read(path)
    except UserError as error:
        return [f"{path} cannot be read: {error}"]
    if journal:
        back = {entry.setting for entry in journal if entry.phase == "reverted"}
        told += [f"{path} does not say that {name} was put back" for name in sorted(stood - back)]
    files = [file for file in path.rglob("*") if file.is_file()]
    return told + [f"{file} has the password" for file in files if password.encode() in file.read_bytes()]


def look_after(scene: Scene, command: str, run: Path | None) -> None:
    """Keep a search that has trials, and more to come, for the next one; what else there is of runs goes."""
    if run is not None:
        scene.go_on.pop(command, None)
        if 0 < len(RunFolder.open(run).tuning_trials()) < TRIALS:
            scene.go_on[command] = run
    for path in scene.folder.glob("runs/*"):
        if path not in scene.go_on.values():
            shutil.rmtree(path)


@contextmanager
def prepared(kind: str) -> Iterator[Scene]:
    """A server of theirs, with a folder that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="loadframe-crash-", dir="/var/tmp") as name,
        somebodys.restartable(kind) as owned,
    ):
        scene = Scene(owned, Path(name))
        scene.prepare()
        yield scene


def crash(
    kind: str,
    kills: int,
    chance: random.Random,
    *,
    of: Sequence[str] = tuple(LONGEST_S),
    reported: float = 0.5,
    early: float = 1.0,
) -> tuple[dict[str, Counter[str]], list[str]]:
    """So many kills of these commands in turn: where they fell, by command, and all that was missed. reported: the
    share that a report follows. early: kills fall within this share of LONGEST_S."""
    where: dict[str, Counter[str]] = {command: Counter() for command in of}
    missed: list[str] = []
    with prepared(kind) as scene:
        commands = Commands(scene.folder)
        try:
            for number in range(kills):
                command, turn = of[number % len(of)], number // len(of)
                at_a_change, report = turn % 2 == 1, chance.random() < reported
                longest_s = early * LONGEST_S[command]
                fell, wrong = kill_once(
                    scene, commands, command, chance, longest_s, at_a_change=at_a_change, report=report
                )
                where[command][fell] += 1
                wrong = [f"kill {number + 1}, of {command} {fell}: {words}" for words in wrong]
                missed += wrong
                for words in wrong:
                    print(words, flush=True)
        finally:
            commands.close()
        missed += [f"after all: {words}" for words in scene.differences()]
    return where, missed


def main() -> int:
    """Kill, and say what was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kind", choices=somebodys.KINDS, default="mariadb")
    parser.add_argument("--only", choices=LONGEST_S, metavar="COMMAND", help=f"one of {'; '.join(LONGEST_S)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of what ends the server
    started = time.monotonic()
    of = [options.only] if options.only else list(LONGEST_S)
    where, missed = crash(options.kind, options.kills, random.Random(options.seed), of=of)
    for command, fell in where.items():
        print(
            f"{command}: {fell.total()} kills, {', '.join(f'{count} {words}' for words, count in fell.most_common())}"
        )
    print(f"{options.kind}, seed {options.seed}: {len(missed)} missed; {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        serve()
    else:
        sys.exit(main())
