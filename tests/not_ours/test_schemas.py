"""What a load makes and drops on a server that is not ours. Its owner has things of exactly our names, and has changed
the defaults by which a name is looked up: every attempt runs without touching them, or is refused in words, and
afterwards everything is as before, bit for bit."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import foreign
from loadframe.connections.postgres_connection import program
from loadframe.errors import TargetError
from loadframe.host.environment import located
from loadframe.kinds.registry import attach
from relaying import Handler, exactly, relay
from waiting import await_that

pytestmark = pytest.mark.server

STUDY = """
[study]
name = "theirs"
question = "How many?"
[target]
kind = "{kind}"
attach = "{address}"
option_file = "{option_file}"
[workload]
kind = "{workload}"
[workload.options]
{options}
[load]
axis = "{axis}"
levels = [1]
[measure]
warmup = "150ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "{budget}"
profile = "off"
"""
UNTIL = 'warmup = "150ms"\nwindow = "300ms"\n'
"""How long a step lasts, unless its work is done."""
WORKLOADS = {
    "pgbench": ("pgbench", "clients", "scale = 1"),
    "oltp": ("oltp", "concurrency", "tables = 1\nrows = 10"),
    "sysbench": ("sysbench", "threads", "tables = 1\ntable_size = 100"),
    "bulk-insert": ("sysbench", "threads", 'script = "bulk_insert"'),
    "metadata-index": ("metadata-index", "scan_threads", "entries = 200"),
    "render-farm": ("render-farm", "active_jobs", "threads = 1"),
    "burst": ("render-farm-burst", "jobs", "threads = 2\nreads = 10"),
}
LOADED = {
    "postgres": ("pgbench", "oltp", "sysbench", "bulk-insert", "metadata-index"),
    "mariadb": ("oltp", "sysbench", "bulk-insert", "metadata-index", "render-farm", "burst"),
    "mysql": ("oltp", "sysbench", "bulk-insert", "render-farm", "burst"),
}
TABLES = (
    *(f"pgbench_{name}" for name in ("accounts", "branches", "tellers", "history")),
    *("oltp_1", "sbtest1", "entries", "progress", "totals", "template", "archive", "job_1", "work_1"),
)
"""Of the loads."""
MAIN = "from loadframe.cli.entry import main; main()"
VERBS = ("measure", "investigate")
Loadframe = Callable[..., Any]


@dataclass
class Theirs:
    """A server of somebody else's. account: the option file of one who may make schemas there, and is no superuser."""

    server: foreign.Server
    account: Path

    @property
    def kind(self) -> str:
        return self.server.kind

    def give(self, name: str, *grants: str) -> Path:
        """An account of this name, by its option file."""
        if self.kind == "postgres":
            self.server.ask(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
        else:
            self.server.ask(f"CREATE USER {name}@localhost IDENTIFIED BY 'secret'")
        for grant in grants:
            self.server.ask(grant)
        section = "owner" if self.kind == "postgres" else "client"
        file = self.server.folder / f"{name}.cnf"
        file.write_text(f"[{section}]\nuser={name}\npassword=secret\n")
        return file

    def study(self, load: str, account: Path | None = None, budget: str = "4s", more: str = "") -> str:
        kind, axis, options = WORKLOADS[load]
        text = STUDY if load != "burst" else STUDY.replace(UNTIL, "").replace("[1]", "[4]")
        return text.format(
            kind=self.kind,
            address=self.server.address,
            option_file=account or self.account,
            workload=kind,
            axis=axis,
            options=options + more,
            budget=budget,
        )

    def fill(self, schema: str) -> None:
        """With a table of each name of ours."""
        for name in TABLES:
            self.server.ask(f"CREATE TABLE {schema}.{name} AS SELECT 'precious' AS mine")

    def dump(self) -> bytes:
        """Everything in the server, byte for byte, with rights and settings of roles."""
        if self.kind == "postgres":
            account = self.server.target.control_account
            command = [str(program("pg_dumpall")), f"--host={self.server.target.socket_folder}"]
            return _said([*command, f"--username={account.user}"], PGPASSWORD=account.password)
        names = sorted(self.server.schemas() - {"information_schema", "performance_schema", "mysql", "sys"})
        dump = located("mariadb-dump") or located("mysqldump")
        command = [str(dump), f"--defaults-file={self.server.option_file}", f"--socket={self.server.address}"]
        command += ["--skip-dump-date", "--routines", "--events", "--databases", *names, "theirs"]
        return _said(command)


def _said(command: list[str], **more: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **more})
    # Newer versions guard what they print with a word that is drawn for each dump.
    return b"\n".join(line for line in done.stdout.splitlines() if b"restrict" not in line[:13])


MAY_GRANT = {
    "mariadb": (
        "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.access', JSON_VALUE(Priv, '$.access') | 1024)"
        " WHERE User = 'loadframe_control'",
        "FLUSH PRIVILEGES",
    ),
    "mysql": ("UPDATE mysql.user SET Grant_priv = 'Y' WHERE User = 'loadframe_control'", "FLUSH PRIVILEGES"),
}
"""Of the server's owner, whom a private one of ours does not let give rights."""
MAY_LOAD = {
    "postgres": ("GRANT pg_monitor TO loader", "GRANT CREATE ON DATABASE postgres TO loader"),
    "mariadb": (
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, TRIGGER, PROCESS ON *.* TO loader@localhost",
    ),
}
MAY_LOAD["mysql"] = MAY_LOAD["mariadb"]


@pytest.fixture(scope="module", params=[*foreign.KINDS, pytest.param("mysql", marks=pytest.mark.mysql)])
def theirs(request: pytest.FixtureRequest) -> Iterator[Theirs]:
    with foreign.running(request.param) as server:
        owned = Theirs(server, server.option_file)
        for statement in MAY_GRANT.get(owned.kind, ()):
            server.ask(statement)
        server.asks.close()  # a connection keeps the rights that it began with
        owned.account = owned.give("loader", *MAY_LOAD[owned.kind])
        owned.fill("theirs")
        if owned.kind == "postgres":
            owned.fill("public")
        yield owned


@pytest.mark.long
def test_a_schema_of_our_name_is_left_alone(theirs: Theirs, loadframe: Loadframe, tmp_path: Path) -> None:
    theirs.server.ask("CREATE SCHEMA loadframe")
    theirs.fill("loadframe")
    theirs.server.ask("CREATE TABLE loadframe.loadframe_run AS SELECT 'precious' AS mine")
    theirs.server.ask("CREATE TABLE loadframe.loadframe_run_0123456789abcdef AS SELECT 'precious' AS mine")
    before = theirs.dump()
    try:
        for load in LOADED[theirs.kind]:
            for account in (theirs.account, theirs.server.option_file):
                (tmp_path / "study.toml").write_text(theirs.study(load, account))
                done = loadframe("measure", "study.toml")
                assert (done.code, "'loadframe' already" in done.err) == (1, True), (load, done.err)
        assert loadframe("changes", "revert").code == 0
        assert theirs.dump() == before
    finally:
        theirs.server.ask("DROP SCHEMA loadframe" + " CASCADE" * (theirs.kind == "postgres"))


@pytest.mark.long
def test_an_empty_schema_of_our_name_is_left_alone(theirs: Theirs, loadframe: Loadframe, tmp_path: Path) -> None:
    theirs.server.ask("CREATE SCHEMA loadframe")
    before = theirs.dump()
    try:
        (tmp_path / "study.toml").write_text(theirs.study("oltp"))
        done = loadframe("measure", "study.toml")
        assert (done.code, "'loadframe' already" in done.err) == (1, True), done.err
        assert loadframe("changes", "revert").code == 0
        assert theirs.dump() == before
    finally:
        theirs.server.ask("DROP SCHEMA loadframe")


DEFAULTS = {
    "postgres": (
        ("ALTER ROLE loader SET search_path = public, theirs", "ALTER ROLE loader RESET search_path"),
        ("ALTER DATABASE postgres SET search_path = theirs", "ALTER DATABASE postgres RESET search_path"),
        ("GRANT ALL ON SCHEMA public, theirs TO loader", "REVOKE ALL ON SCHEMA public, theirs FROM loader"),
    ),
    "mariadb": (
        ("SET GLOBAL init_connect = 'USE theirs'", "SET GLOBAL init_connect = ''"),
        (
            "SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
            "SET GLOBAL sql_mode = DEFAULT",
        ),
    ),
}
DEFAULTS["mysql"] = DEFAULTS["mariadb"]
LOOKED_UP_ELSEWHERE = {("mariadb", load) for load in ("sysbench", "bulk-insert", "metadata-index")}
LOOKED_UP_ELSEWHERE |= {("mysql", load) for load in ("sysbench", "bulk-insert")}
"""Loads that name no schema, and whose connections are led to another one: refused."""


@pytest.mark.long
def test_changed_defaults_lead_no_load_to_other_tables(theirs: Theirs, loadframe: Loadframe, tmp_path: Path) -> None:
    for change, _ in DEFAULTS[theirs.kind]:
        theirs.server.ask(change)
    before = theirs.dump()
    try:
        for load in LOADED[theirs.kind]:
            (tmp_path / "study.toml").write_text(theirs.study(load))
            done = loadframe("measure", "study.toml")
            if (theirs.kind, load) in LOOKED_UP_ELSEWHERE:
                assert (done.code, "of this run alone" in done.err or "not started" in done.err) == (1, True), done.err
            else:
                assert done.code == 0, (load, done.err)
            assert theirs.dump() == before, load
    finally:
        for _, back in DEFAULTS[theirs.kind]:
            theirs.server.ask(back)


MAY_LOOK = {"postgres": ("GRANT pg_monitor TO looker",), "mariadb": ("GRANT PROCESS ON *.* TO looker@localhost",)}
MAY_LOOK["mysql"] = MAY_LOOK["mariadb"]


@pytest.mark.long
def test_an_account_without_rights_is_refused_in_words(theirs: Theirs, loadframe: Loadframe, tmp_path: Path) -> None:
    account = theirs.give("looker", *MAY_LOOK[theirs.kind])
    before = theirs.dump()
    for load in LOADED[theirs.kind]:
        (tmp_path / "study.toml").write_text(theirs.study(load, account))
        done = loadframe("measure", "study.toml")
        assert (done.code, "denied" in done.err) == (1, True), (load, done.err)
        assert "Not reverted" not in done.err
    assert theirs.dump() == before


@pytest.mark.long
def test_a_kill_in_the_middle_leaves_nothing_once_it_is_reverted(
    theirs: Theirs, loadframe: Loadframe, tmp_path: Path
) -> None:
    """As the schema appears, and amid the steps."""
    before = theirs.dump()
    loads = [load for load in LOADED[theirs.kind] if load in ("pgbench", "metadata-index", "render-farm")]
    for verb, load, steps in (*(("measure", load, 0) for load in loads), *((verb, "oltp", 1) for verb in VERBS)):
        (tmp_path / "study.toml").write_text(theirs.study(load, theirs.server.option_file, budget="60s"))
        command = [sys.executable, "-P", "-c", MAIN, verb, "study.toml", "--runs", f"{verb}-{load}"]
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=said, start_new_session=True)
        begun = partial(_begun, theirs, tmp_path / f"{verb}-{load}", steps)
        try:
            await_that(begun, f"a schema and {steps} steps of {load}", of=process)
        finally:
            process.kill()
            process.wait()
        reverted = loadframe("changes", "revert")
        assert reverted.code == 0, reverted.out
        assert theirs.dump() == before, load


def _begun(theirs: Theirs, runs: Path, steps: int) -> bool:
    """Whether our schema is there, and as many steps in the runs of this folder."""
    finished = sum(file.read_text().count("\n") for file in runs.glob("*/steps.jsonl"))
    return "loadframe" in theirs.server.schemas() and finished >= steps


def test_a_type_of_the_owner_in_our_schema_is_not_dropped_from_the_tables_that_use_it(
    theirs: Theirs, loadframe: Loadframe, tmp_path: Path
) -> None:
    if theirs.kind != "postgres":
        pytest.skip("schemas of it have no types")
    (tmp_path / "study.toml").write_text(theirs.study("oltp", theirs.server.option_file, budget="60s"))
    command = [sys.executable, "-P", "-c", MAIN, "measure", "study.toml", "--runs", "runs"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=said, start_new_session=True)
    try:
        await_that(partial(_begun, theirs, tmp_path / "runs", 1), "a step of oltp", of=process)
    finally:
        process.kill()
        process.wait()
    theirs.server.ask("CREATE TYPE loadframe.mood AS ENUM ('precious')")
    theirs.server.ask("CREATE TABLE public.precious AS SELECT 'precious'::loadframe.mood AS mine")
    before = theirs.dump()
    try:
        refused = loadframe("changes", "revert")
        assert theirs.dump() == before
        assert (refused.code != 0, "mood" in refused.out + refused.err) == (True, True), (refused.out, refused.err)
    finally:
        theirs.server.ask("DROP TABLE public.precious")
        theirs.server.ask("DROP TYPE IF EXISTS loadframe.mood")
    assert loadframe("changes", "revert").code == 0
    assert "loadframe" not in theirs.server.schemas()


@pytest.mark.long
def test_another_database_is_not_touched(theirs: Theirs, loadframe: Loadframe, tmp_path: Path) -> None:
    """The schema is made in the database of the option file, whatever is in the others."""
    if theirs.kind != "postgres":
        pytest.skip("schemas of it are databases")
    theirs.server.ask("CREATE DATABASE other")
    account = theirs.server.folder / "other.cnf"
    own = theirs.server.target.control_account
    account.write_text(f"[other]\nuser={own.user}\npassword={own.password}\ndbname=other\n")
    theirs.server.ask("CREATE SCHEMA loadframe")
    theirs.fill("loadframe")
    try:
        before = theirs.dump()
        for load in LOADED[theirs.kind]:
            (tmp_path / "study.toml").write_text(theirs.study(load, account))
            done = loadframe("measure", "study.toml")
            assert done.code == 0, (load, done.err)
            assert theirs.dump() == before, load
    finally:
        theirs.server.ask("DROP SCHEMA loadframe CASCADE")
        theirs.server.ask("DROP DATABASE other")


class Renumbering(Handler):
    """Gives a connection another number than the server did, as ProxySQL does."""

    def begin(self, behind: socket.socket) -> None:
        head = exactly(behind, 4)
        greeting = bytearray(exactly(behind, int.from_bytes(head[:3], "little")))
        greeting[greeting.index(0) + 1] ^= 1
        self.request.sendall(head + greeting)


def test_a_proxy_is_refused_before_anything_is_made(theirs: Theirs) -> None:
    if theirs.kind == "postgres":
        pytest.skip("see test_poolers.py")
    before = theirs.dump()
    with (
        relay(Renumbering, theirs.server.address) as port,
        pytest.raises(TargetError, match="is a proxy") as caught,
    ):
        attach(f"{theirs.kind}:127.0.0.1:{port}", option_file=theirs.server.option_file)
    assert "Name the server itself" in caught.value.remedy
    assert theirs.dump() == before
