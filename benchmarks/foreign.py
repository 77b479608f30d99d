"""A private server that plays somebody else's: with its owner's account and data. For crash.py and tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, ids_of
from loadframe.host.processes import Resources
from loadframe.kinds import registry as targets
from loadframe.kinds.base import Attached
from loadframe.kinds.registry import attach
from loadframe.model import SettingValue, TargetState

KINDS = ("mariadb", "postgres")
FAMILY = ("mariadb", "mysql")
"""A MySQL can be had like a MariaDB, where there is one."""
STUDY = """\
[study]
name = "foreign"
question = "What does a setting give?"
[workload]
kind = "oltp"
[workload.options]
rows = 100
tables = 1
[load]
axis = "concurrency"
levels = [1]
[target]
kind = "{kind}"
attach = "{address}"
option_file = "{option_file}"
{target}[measure]
warmup = "150ms"
window = "300ms"
profile = "off"
"""
"""Ends within [measure], which may go on."""
RESTARTED = 'config = "{config}"\nrestart = {restart}\n'
"""Lines of its [target]."""
ANSWERS_WITHIN_S = 60.0
GRACE_S = 5.0
MANAGER = """
import fcntl, json, os, signal, subprocess, sys, time
own = json.load(open(sys.argv[1]))
def runs(pid):
    try:
        return "Z" not in open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return False
alone = open(own["pid"] + ".lock", "w")
fcntl.flock(alone, fcntl.LOCK_EX)
if os.path.exists(own["pid"]):
    pid = int(open(own["pid"]).read())
    if runs(pid):
        os.kill(pid, own["signal"])
    while runs(pid):
        time.sleep(0.01)
with open(own["log"], "ab") as log:
    started = subprocess.Popen(own["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=own["folder"],
                               start_new_session=True, user=own["user"], extra_groups=own["groups"])
open(own["pid"], "w").write(str(started.pid))
"""
"""What its owner restarts it with: it ends the process that it has started last, and starts another one; one restart at
a time, as systemd has it."""


@dataclass(frozen=True)
class Server:
    """target: as we started it. folder: of its owner, with the account in option_file. asks: its owner's connection,
    which is made again after a restart."""

    target: Any
    folder: Path
    address: str
    option_file: Path
    asks: Any

    @property
    def kind(self) -> str:
        return str(self.target.kind)

    @property
    def password(self) -> str:
        """Of its owner: whoever changes settings needs the right to do so."""
        return str(self.target.control_account.password)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """What its owner asks, and is answered."""
        answered: list[tuple[Any, ...]] = self.asks.ask(statement)
        return answered

    def await_answer(self) -> None:
        """Until it answers: one that is being restarted does not. TimeoutError."""
        until = time.monotonic() + ANSWERS_WITHIN_S
        while not self.asks.ping():
            if time.monotonic() > until:
                raise TimeoutError(f"the server at {self.address} does not answer")
            time.sleep(0.01)

    def study(self, target: str = "") -> str:
        """A study of it; target: lines that go into the table of this name."""
        return STUDY.format(kind=self.kind, address=self.address, option_file=self.option_file, target=target)

    def attached(self) -> Attached:
        """As Loadframe attaches to it; to be closed."""
        return attach(f"{self.kind}:{self.address}", option_file=self.option_file)

    def settings(self, names: Iterable[str]) -> dict[str, SettingValue]:
        """What is in effect."""
        server = self.attached()
        effective = server.effective()
        server.close()
        return {name: effective[name] for name in names}

    def schemas(self) -> set[str]:
        return {str(name) for (name,) in self.ask("SELECT schema_name FROM information_schema.schemata")}


@contextmanager
def running(kind: str) -> Iterator[Server]:
    """Such a server, with 7 in theirs.precious."""
    with Lease.acquire("somebody's server") as lease:
        target: Any = targets.kind_named(kind).make(lease, Resources())
        try:
            target.create()
            target.start(TargetState({"max_connections": 50}))
            server = _owned(target, lease.folder / "theirs")
            with closing(server.asks):
                server.ask("CREATE SCHEMA theirs")
                server.ask("CREATE TABLE theirs.precious AS SELECT 7 AS id")
                yield server
        finally:
            target.destroy()


@dataclass(frozen=True)
class Restartable:
    """Such a server, and what restarts it. config: a file among its configuration that is not there."""

    server: Server
    config: Path
    restart: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.server.kind

    def study(self) -> str:
        """A study that restarts it."""
        return self.server.study(RESTARTED.format(config=self.config, restart=json.dumps(self.restart)))


@contextmanager
def restartable(kind: str) -> Iterator[Restartable]:
    """The same server with a configuration of its own, which includes a folder, and a manager of its own."""
    with running(kind) as server:
        try:
            yield _managed(server)
        finally:
            for process in identity.naming(server.folder.parent.name):
                identity.end_all([process], GRACE_S)


def _managed(theirs: Server) -> Restartable:
    target, folder, private = theirs.target, theirs.folder, theirs.target
    included, (program, *options) = folder / "conf.d", private.command
    included.mkdir()
    if theirs.kind in FAMILY:
        (folder / "my.cnf").write_text(f"!includedir {included}\n")
        command = [program, f"--defaults-file={folder}/my.cnf", *options[1:]]
        command = [word for word in command if not word.startswith("--init-file=")]
    else:
        command = [program, *options]
        with private.configuration.open("a") as configuration:
            configuration.write(f"include_dir = '{included}'\n")
    target.stop()
    manager, own = folder / "manager.py", folder / "own.json"
    manager.write_text(MANAGER)
    told = {"command": command, "pid": f"{folder}/pid", "log": f"{folder}/log", "folder": str(folder)}
    user = None if private.user == US else ids_of(private.user).uid
    groups = [private._lease.user] if user is not None else None  # else it cannot reach its data
    own.write_text(json.dumps({**told, "user": user, "groups": groups, "signal": int(private.stop_signal)}))
    restart = (sys.executable, "-I", str(manager), str(own))
    subprocess.run(restart, check=True)
    theirs.await_answer()
    config = included / ("zz-loadframe.cnf" if theirs.kind in FAMILY else "zz-loadframe.conf")
    return Restartable(theirs, config, restart)


def _owned(target: Any, folder: Path) -> Server:
    """With an option file of its owner's, and without the schema that a private MariaDB or MySQL has for us."""
    folder.mkdir()
    folder.chmod(0o755)
    account, option_file = target.control_account, folder / "account"
    if target.kind in FAMILY:
        target._control.ask("DROP SCHEMA loadframe")
        address, section = target.endpoint().address, "client"
    else:
        address, section = str(target.socket), "owner"
    option_file.write_text(f"[{section}]\nuser={account.user}\npassword={account.password}\n")
    asks: Any = attach(f"{target.kind}:{address}", option_file=option_file)
    return Server(target, folder, address, option_file, asks._control)
