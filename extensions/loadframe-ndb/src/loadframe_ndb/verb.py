"""loadframe ndb CONFIG: whether a config.ini of MySQL Cluster holds together."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from loadframe.cli.common import MUST_ACT, Json, command, show, size_of, writing
from loadframe.cli.terminal import say
from loadframe.errors import TargetError, UsageError
from loadframe.formats.named_files import write_whole

MOST_CPUS = 1 << 16
"""The CPU numbers that a list of CPUs may name (read_cpus)."""


def ndb(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config.ini of the management server.")],
    servers: Annotated[
        list[Path] | None,
        typer.Option("--mysqld", metavar="FILE", help="The option file of a MySQL server; repeat it for each server."),
    ] = None,
    cpus: Annotated[
        int | None, typer.Option("--cpus", min=1, max=MOST_CPUS, metavar="N", help="CPUs of each data node's host.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Memory of each data node's host: 64GiB.")
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            "--bound", metavar="NAME=CPUS", help="CPUs of another process on those hosts: mysqld=8-11 (taskset)."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.NAME=VALUE", help="Check with this change: 'ndbd default.DataMemory=1G'."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", metavar="FILE", dir_okay=False, help="Write the changed file, unless an error is found."
        ),
    ] = None,
    start: Annotated[
        bool,
        typer.Option(
            "--start", help="Also start a private cluster with it here, unless an error is found, and end it."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a MySQL Cluster config.ini: settings, threads and their CPUs, API slots, memory, durability."""
    with command(as_json):
        from loadframe_ndb.checking import check_ndb, read_ndb_config, start_ndb
        from loadframe_ndb.report import ndb_json, render_ndb

        read = read_ndb_config(config, [_change(text) for text in changes or []])
        report = check_ndb(
            read,
            str(config),
            servers=servers or [],
            cpus=cpus,
            memory_bytes=None if memory is None else size_of("--memory", memory, "64GiB"),
            bound=dict(_bound(text) for text in bound or []),
        )
        if start and not report.refused:
            report = replace(report, start=start_ndb(read))
        show(as_json, ndb_json, render_ndb, report)
        if write is not None and not report.refused:
            with writing(write, TargetError, "Name another file."):
                write_whole(write, read.text.encode())  # or not at all: it may be the file that was read
            say(f"Written: {write}")
        elif write is not None:
            say(f"{write} is not written: it has errors.")
        if start and report.start is None:
            say(f"{config} is not started: it has errors.")
        if report.refused:
            raise typer.Exit(MUST_ACT)


def _change(text: str) -> tuple[str, str, str]:
    matched = re.fullmatch(r"([^.=]+)\.([^=]+)=(.*)", text)
    if matched is None:
        raise UsageError(f"--set {text!r} is not a change", remedy="Write --set 'ndbd default.DataMemory=1G'.")
    return matched[1].strip(), matched[2].strip(), matched[3].strip()


def _bound(text: str) -> tuple[str, frozenset[int]]:
    from loadframe_ndb.settings import read_cpus

    name, _, cpus = text.partition("=")
    remedy = "Write --bound mysqld=8-11."
    if not name.strip():
        raise UsageError(f"--bound {text!r} names no process", remedy=remedy)
    try:
        return name.strip(), read_cpus(cpus)
    except ValueError as error:
        raise UsageError(f"--bound {text!r} names no CPUs", remedy=remedy) from error
