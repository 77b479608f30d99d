"""Killed at any moment, nothing stays changed: python benchmarks/crash.py [--kills N] [--kind mariadb|postgres]

A private server plays somebody else's: it has an account of theirs, data of theirs, and goes on. `loadframe compare`
is run on it, with an alternative that changes the server's settings and those of a machine whose /proc is a folder,
and is killed (-9): every other time at a random moment, else within milliseconds of a change. After each kill the next
command (`loadframe changes revert`) has to leave settings, schemas and data as they were, nothing in the state
directory, and every run folder readable, with the password nowhere. Prints a line per miss, then how many kills fell
where; ends with 1 where anything was missed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance
from loadframe.changes import host
from loadframe.changes.journal import read
from loadframe.model import TargetState
from loadframe.runs.folder import RunFolder
from loadframe.targets.mariadb import MariadbTarget
from loadframe.targets.postgres import PostgresTarget
from loadframe.targets.private_server import Account

MACHINE = {"vm/dirty_ratio": "20", "vm/dirty_bytes": "0", "vm/swappiness": "60"}
SETTINGS = {
    "mariadb": "innodb_flush_log_at_trx_commit = 2, max_connections = 77",
    "postgres": 'synchronous_commit = "off", work_mem = "8MB"',
}
STUDY = """\
[study]
name = "crash"
question = "Is everything put back?"
[target]
kind = "{kind}"
attach = "{address}"
option_file = "{option_file}"
[workload]
kind = "oltp"
[workload.options]
rows = 100
tables = 1
[load]
axis = "concurrency"
levels = [1]
[measure]
window = "300ms"
blocks = {{ min = 5, max = 5 }}
budget = "60s"
[remedies]
allow = ["target", "host"]
[[alternative]]
name = "changed"
target = {{ settings = {{ {settings} }} }}
host = {{ settings = {{ "vm.dirty_ratio" = 5, "vm.swappiness" = 1 }} }}
"""
LONGEST_S = 9.0
"""Starting, five blocks, and the end take about as long on two cores."""
SOON_S = 0.004
CHILD = "--as-the-command"


@dataclass
class Somebodys:
    """The server, and what its owner asks it. folder: of the studies and runs."""

    kind: str
    target: Any
    folder: Path

    @property
    def account(self) -> Account:
        """Of its owner: whoever changes settings needs the right to do so."""
        found: Account = self.target._server.control_account
        return found

    def prepare(self) -> None:
        """Data of theirs, the account, the machine, the study."""
        ask, options = self.target._control.ask, self.target.endpoint().options
        option_file = self.folder / "account"
        if self.kind == "mariadb":
            ask("DROP SCHEMA loadframe")
            address, section = self.target.endpoint().address, "client"
        else:
            address, section = f"{options['socket']}/.s.PGSQL.{options['port']}", "owner"
        option_file.write_text(f"[{section}]\nuser={self.account.user}\npassword={self.account.password}\n")
        ask("CREATE SCHEMA theirs")
        ask("CREATE TABLE theirs.precious AS SELECT 7 AS id")
        for name, value in MACHINE.items():
            path = self.folder / "machine/proc/sys" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        text = STUDY.format(kind=self.kind, address=address, option_file=option_file, settings=SETTINGS[self.kind])
        (self.folder / "study.toml").write_text(text)

    def seen(self) -> dict[str, object]:
        """All that has to stay as it is."""
        ask = self.target._control.ask
        if self.kind == "mariadb":
            settings = ask("SHOW GLOBAL VARIABLES")
        else:
            ask("SELECT pg_sleep(0.2)")  # each connection reads the configuration when it comes to it
            files = "SELECT 'in the files: ' || name, setting FROM pg_file_settings"
            settings = ask(f"SELECT name, setting FROM pg_settings UNION ALL {files}")
        machine = {name: (self.folder / "machine/proc/sys" / name).read_text().split()[0] for name in MACHINE}
        return {
            "settings": {str(name): str(value) for name, value in settings},
            "machine": machine,
            "schemas": sorted(ask("SELECT schema_name FROM information_schema.schemata")),
            "data": ask("SELECT id FROM theirs.precious"),
            "state": sorted(path.name for path in self.folder.glob("state/*/*") if not path.name.endswith("lock")),
        }


def command(somebodys: Somebodys, *arguments: str) -> subprocess.Popen[str]:
    """A loadframe command on that machine."""
    environment = {**os.environ, "LOADFRAME_STATE": str(somebodys.folder / "state")}
    return subprocess.Popen(
        [sys.executable, __file__, CHILD, str(somebodys.folder / "machine"), *arguments],
        cwd=somebodys.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def await_change(somebodys: Somebodys, running: subprocess.Popen[str], count: int) -> None:
    """Until the list of what is changed was written so often, or the command has ended."""
    seen: tuple[int, ...] = ()
    while running.poll() is None and count > 0:
        now = tuple(path.stat().st_ino for path in (somebodys.folder / "state/changes").glob("*.json") if path.exists())
        count -= now != seen
        seen = now
        time.sleep(0.0002)


def kill_once(somebodys: Somebodys, chance: random.Random, *, at_a_change: bool) -> tuple[str, list[str]]:
    """One run that is killed, and the command after it: where the kill fell, and what was missed."""
    before = somebodys.seen()
    running = command(somebodys, "compare", "study.toml", "--runs", "runs")
    if at_a_change:
        await_change(somebodys, running, chance.randint(1, 30))
        time.sleep(chance.uniform(0.0, SOON_S))
    else:
        time.sleep(chance.uniform(0.0, LONGEST_S))
    ended = running.poll() is not None
    running.send_signal(signal.SIGKILL)
    said, _ = running.communicate()
    missed = [f"the command failed by itself: {said}"] if ended and running.returncode != 0 else []
    stood = differences(before, somebodys.seen())
    after = command(somebodys, "changes", "revert", "--runs", "runs")
    words, _ = after.communicate()
    missed += [f"changes revert ended with {after.returncode}: {words}"] if after.returncode != 0 else []
    missed += [f"{name} (the command said: {words})" for name in differences(before, somebodys.seen())]
    for path in somebodys.folder.glob("runs/*"):
        missed += unreadable(path, somebodys.account.password)
        shutil.rmtree(path)
    where = "after its end" if ended else "while something was changed" if stood else "while nothing was changed"
    return where, missed


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it was, in words."""
    told = []
    for name, value in before.items():
        if isinstance(value, dict):
            told += [f"{key} was {value.get(key)}, is {after[name].get(key)}" for key in sorted({*value, *after[name]})
                     if value.get(key) != after[name].get(key)]  # fmt: skip
        elif after[name] != value:
            told.append(f"{name}: was {value}, is {after[name]}")
    return told


def unreadable(path: Path, password: str) -> list[str]:
    """What of a run folder cannot be read, or holds the password."""
    if not (path / "run.json").exists():
        return []  # killed before it was one
    run = RunFolder.open(path)
    told = []
    try:
        run.steps(), run.treatments(), read(path)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a miss
        told.append(f"{path} cannot be read: {error!r}")
    files = [file for file in path.rglob("*") if file.is_file()]
    return told + [f"{file} has the password" for file in files if password.encode() in file.read_bytes()]


def crash(kind: str, kills: int, chance: random.Random) -> tuple[Counter[str], list[str]]:
    """So many kills: where they fell, and all that was missed."""
    where: Counter[str] = Counter()
    missed: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="loadframe-crash-", dir="/var/tmp") as name,
        Lease.acquire("crash") as lease,
    ):
        make: Any = MariadbTarget if kind == "mariadb" else PostgresTarget
        target = make(lease=lease, allowance=Allowance())
        try:
            target.create()
            target.start(TargetState())
            somebodys = Somebodys(kind, target, Path(name))
            somebodys.prepare()
            for number in range(kills):
                fell, wrong = kill_once(somebodys, chance, at_a_change=number % 2 == 1)
                where[fell] += 1
                missed += [f"kill {number + 1}, {fell}: {words}" for words in wrong]
                for words in missed[-len(wrong) :] if wrong else ():
                    print(words, flush=True)
        finally:
            target.destroy()
    return where, missed


def main() -> int:
    """Kill, and say what was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kind", choices=sorted(SETTINGS), default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    started = time.monotonic()
    where, missed = crash(options.kind, options.kills, random.Random(options.seed))
    fell = ", ".join(f"{count} {words}" for words, count in where.most_common())
    seconds = time.monotonic() - started
    print(f"{options.kind}, seed {options.seed}: {fell}; {len(missed)} missed; {seconds:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        from loadframe.cli import entry

        host.ROOT = Path(sys.argv[2])
        sys.argv = ["loadframe", *sys.argv[3:]]
        entry.main()
    else:
        sys.exit(main())
