"""Killed at any moment, nothing stays: python benchmarks/crash.py [--kills N] [--target TARGET ...] [--verb VERB ...]

Every verb that measures, and report while it writes, is run on private targets (SQLite, MariaDB, PostgreSQL, nginx, a
service with a worker and a helper) and on a private server that plays somebody else's, in turn, with a study that
changes settings of the target and of a machine whose /proc is a folder, and is killed (-9): every other time at a
random moment, else within milliseconds of what it writes into the state directory. A search that was killed between its
trials is gone on with. After each kill the next commands (now and then `loadframe report` of the run, where a step was
finished, then `changes revert`) have to leave settings, schemas and data as they were, no process, control group,
shared memory or temporary data, nothing in the state directory or beside the server's configuration, every run folder
readable, with every step that was finished and what became of its changes in its journal, and the password nowhere.
Prints a line per miss, then a table of the kills by verb and target; ends with 1 where anything was missed.
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
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crash_scenes import RESTARTING, TARGETS, TRIALS, VERBS, Left, Scene, prepared
from loadframe.changes import host
from loadframe.changes.journal import read
from loadframe.errors import UserError
from loadframe.experiments.answer_kinds import LADDER
from loadframe.experiments.side_by_side import START
from loadframe.runs.folder import RunFolder
from loadframe_tune.trials import trials_in

LONGEST_S = {"tune": 5.0, RESTARTING: 10.0, "limits": 3.0, "demo": 6.0, "case run": 6.0, "report": 2.0}
"""By verb; OTHERWISE_S where it is not named. Random moments lie before this, and before the end of one that ended."""
OTHERWISE_S = 4.0
HANGS_S = 180.0
"""A command that takes longer is no more waited for; -9 is a miss then."""
MOST_CHANGES = 20
"""The most times that the state directory is written before a kill that waits for it."""
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
        """Its exit status (minus the signal), and what it said. One that hangs is killed."""
        if not self.ended(HANGS_S):
            self.kill()
        status = self._commands.status()
        os.close(self._descriptor)
        return status, (self._commands.folder / "said").read_text()


class Commands:
    """Runs loadframe commands one at a time, each forked from a process that has imported everything: it begins at
    once."""

    def __init__(self, scene: Scene) -> None:
        self.folder = folder = scene.folder
        self._server = subprocess.Popen(
            [sys.executable, __file__, CHILD],
            cwd=folder,
            env={**os.environ, **scene.environment},
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
    import vl_convert  # noqa: F401 - so that no command has to

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
class Tally:
    """Of one verb on one target. ended: commands that came to their end before the kill; where: how many kills fell
    where."""

    longest_s: float
    ended: int = 0
    where: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.where.total()


def await_writing(scene: Scene, running: Command, count: int, within_s: float) -> None:
    """Until the state directory was written so often, or the command has ended, or the time is over."""
    seen: set[int] = set()
    until = time.monotonic() + within_s
    while count > 0 and time.monotonic() < until and not running.ended(0.0005):
        now = set[int]()
        for path in scene.folder.glob("state/*/*.json"):
            with suppress(FileNotFoundError):
                now.add(path.stat().st_ino)
        count -= bool(now - seen)
        seen |= now


def kill_once(
    scene: Scene, commands: Commands, verb: str, tally: Tally, chance: random.Random, *, at_a_change: bool, report: bool
) -> None:
    """One run that is killed, and the commands after it. report: its report is one of them, where a step of the first
    state was finished."""
    before = scene.runs()
    started = time.monotonic()
    running = commands.start(*scene.arguments(verb))
    if at_a_change:
        await_writing(scene, running, chance.randint(1, MOST_CHANGES), tally.longest_s)
        running.ended(chance.uniform(0.0, SOON_S))
    else:
        running.ended(chance.uniform(0.0, tally.longest_s))
    running.kill()
    status, said = running.wait()
    names, left = scene.not_reverted(), scene.left()
    tally.missed += ["the command told the password"] if scene.tells_password(said) else []
    run = next((path for path in scene.runs() if path not in before), None)
    if status == -signal.SIGKILL:
        tally.where["changed" if names else "unchanged"] += 1
    else:
        tally.ended += 1
        tally.longest_s = min(tally.longest_s, time.monotonic() - started)
        tally.missed += [f"the command failed by itself: {said}"] if status != 0 else []
        tally.missed += [f"it ended by itself, and {name} was left" for name in sorted({*names, *left.names})]
    tally.missed += clean_up(scene, commands, run, names, left, report=report)
    look_after(scene, verb, run)


def clean_up(
    scene: Scene, commands: Commands, run: Path | None, names: set[str], left: Left, *, report: bool
) -> list[str]:
    """The commands after a kill, and what they have left."""
    finished = 0 if run is None else _lines(run / "steps.jsonl")
    measured = [] if run is None or not report else RunFolder(run).steps()
    reports = any(step.treatment == START and step.counts for step in measured)
    following = [["report", str(run)]] if reports else []
    missed, words = [], ""
    for arguments in (*following, ["changes", "revert", "--runs", "runs"]):
        status, words = commands.start(*arguments).wait()
        missed += [f"{' '.join(arguments)} ended with {status}: {words}"] if status != 0 else []
        missed += [f"{' '.join(arguments)}: {words}"] if "Traceback" in words else []
        missed += [f"{' '.join(arguments)} told the password"] if scene.tells_password(words) else []
    missed += [f"{name} (the command said: {words})" for name in (*scene.differences(), *scene.remains(left))]
    if run is not None:
        missed += unreadable(run, scene.password, names)
        kept = len(RunFolder(run).steps())
        missed += [f"{run} had {finished} finished steps, and has {kept}"] if kept != finished else []
    return missed


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def unreadable(path: Path, password: str | None, stood: set[str]) -> list[str]:
    """What of a run folder cannot be read, holds the password, or does not say what became of what stood."""
    run, told = RunFolder.open(path), list[str]()
    try:
        run.steps(), run.treatments(), trials_in(run), LADDER.stored(run)
        journal = read(path)
    except UserError as error:
        return [f"{path} cannot be read: {error}"]
    if journal:
        back = {entry.setting for entry in journal if entry.status == "reverted"}
        told += [f"{path} does not say that {name} was put back" for name in sorted(stood - back)]
    files = [file for file in path.rglob("*") if file.is_file()] if password is not None else []
    return told + [f"{file} has the password" for file in files if (password or "").encode() in file.read_bytes()]


def look_after(scene: Scene, verb: str, run: Path | None) -> None:
    """Keep a search that has trials, and more to come, for the next one, and the run that is reported; what else there
    is of runs goes."""
    if run is not None:
        scene.go_on.pop(verb, None)
        if 0 < len(trials_in(RunFolder.open(run))) < TRIALS:
            scene.go_on[verb] = run
    for path in scene.folder.glob("runs/*"):
        if path not in scene.go_on.values() and path != scene.reported:
            shutil.rmtree(path)


def make_run(scene: Scene, commands: Commands) -> None:
    """One that is reported."""
    status, said = commands.start("investigate", "study.toml", "--runs", "runs").wait()
    if status != 0:
        raise RuntimeError(f"no run to report: {said}")
    (scene.reported,) = scene.runs()


def crash(
    kills: int,
    chance: random.Random,
    *,
    targets: Sequence[str] = TARGETS,
    verbs: Sequence[str] | None = None,
    reported: float = 0.5,
    early: float = 1.0,
) -> dict[tuple[str, str], Tally]:
    """Kill the verbs on the targets in turn, `kills` times in all. reported: the share that a report follows. early:
    kills fall within this share of LONGEST_S. Commands that come to their end before their kill do not count."""
    pairs = [(verb, target) for target in targets for verb in VERBS[target] if verbs is None or verb in verbs]
    found = {pair: Tally(early * LONGEST_S.get(pair[0], OTHERWISE_S)) for pair in pairs}
    chance.shuffle(pairs)
    with ExitStack() as stack:
        scenes = {target: stack.enter_context(prepared(target)) for target in targets}
        commands = {target: Commands(scene) for target, scene in scenes.items()}
        for each in commands.values():
            stack.callback(each.close)
        for verb, target in pairs:
            if verb == "report":
                make_run(scenes[target], commands[target])
        number = 0
        while sum(tally.kills for tally in found.values()) < kills:
            (verb, target), turn = pairs[number % len(pairs)], number // len(pairs)
            tally, number = found[verb, target], number + 1
            known = len(tally.missed)
            kill_once(
                scenes[target],
                commands[target],
                verb,
                tally,
                chance,
                at_a_change=turn % 2 == 1 and verb != "report",
                report=chance.random() < reported,
            )
            for words in tally.missed[known:]:
                print(f"kill {number}, of {verb} on {target}: {words}", flush=True)
    return found


def table(found: dict[tuple[str, str], Tally]) -> str:
    """By verb and target."""
    rows = [f"{'verb':18} {'target':18} {'kills':>5} {'amid changes':>12} {'ended first':>11} {'missed':>6}"]
    for (verb, target), tally in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
        amid, missed = tally.where["changed"], len(tally.missed)
        rows.append(f"{verb:18} {target:18} {tally.kills:5} {amid:12} {tally.ended:11} {missed:6}")
    return "\n".join(rows)


def main() -> int:
    """Kill, and say what was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=TARGETS)
    parser.add_argument(
        "--verb", nargs="+", metavar="VERB", help=f"of {'; '.join(dict.fromkeys(sum(VERBS.values(), ())))}"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of what ends the servers
    started = time.monotonic()
    found = crash(options.kills, random.Random(options.seed), targets=options.target, verbs=options.verb)
    print(table(found))
    kills, missed = (sum(of) for of in zip(*((each.kills, len(each.missed)) for each in found.values()), strict=True))
    print(f"{kills} kills, seed {options.seed}: {missed} missed; {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        serve()
    else:
        sys.exit(main())
