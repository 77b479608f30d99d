"""A kind of target as one study declares it: the settings of its service are the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.host.environment import located, python_package
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.kinds.service.formats import ENDINGS, PACKAGES
from loadframe.kinds.service.settings import KIND, catalogue, tunable
from loadframe.kinds.service.target import ServiceTarget
from loadframe.kinds.service.words import places
from loadframe.model import Knob, Requirement
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import SettingTable

TUNED = SettingsFile("tuned.toml", "{name} = {value}", head="[target.settings]\n", quotes='"', words=("false", "true"))
"""What `tune` has found, as a study takes it."""
OWN = frozenset({"port", "data", "file", "value"})
"""Names in braces that are not settings."""
PATH = re.compile(r"/[!-~]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_COMMAND = 'For example command = ["python3", "app.py", "--port", "{port}"].'


def as_declared(row: KindOfTarget, target: TargetTable) -> KindOfTarget:
    """The record of the kind `service` with what a study declares. StudyError for what does not fit together."""
    check(target)
    knobs = tuple(_knob(name, table) for name, table in target.setting.items())
    known = catalogue((knob, not target.setting[knob.name].restarts) for knob in knobs)
    return replace(
        row,
        make=lambda lease, allowance: ServiceTarget(target, known, lease, allowance),
        catalogue=known,
        check_settings=known.check,
        requirements=lambda: [_program(target), *_packages(target)],
        tunables=tuple(tunable(knob) for knob in knobs),
        file=TUNED,
        knobs=knobs,
        notes=tuple(_notes(target)),
    )


def check(target: TargetTable) -> None:
    """StudyError for a service that cannot be started as it is declared."""
    if not target.command:
        raise StudyError(f"a target of kind {KIND} has no target.command", remedy=NO_COMMAND)
    for name, table in target.setting.items():
        if name in OWN:
            raise StudyError(
                f"target.setting.{name}: {{{name}}} has a meaning of its own in commands", remedy="Call it otherwise."
            )
        _check_setting(name, table)
    _check_places(target)
    if "port" not in places([*target.command, *target.environment.values()]) and target.ready is None:
        raise StudyError(
            "target.command has no {port}, and nothing else says at which port the service listens",
            remedy=NO_COMMAND,
        )
    wrong = next((path for path in target.paths.split() if PATH.fullmatch(path) is None), None)
    if wrong is not None:
        raise StudyError(f"target.paths: {wrong!r} is not a path", remedy="Paths begin with /, as in '/ /about'.")


def _check_setting(name: str, table: SettingTable) -> None:
    variable = table.name or name.upper()
    if table.apply == "environment" and VARIABLE.fullmatch(variable) is None:
        raise StudyError(
            f"target.setting.{name}.name = {variable!r} is not the name of an environment variable",
            remedy="It has letters, digits and underscores.",
        )
    if variable.startswith("LOADFRAME_") or (table.apply == "environment" and variable.startswith("LD_")):
        raise StudyError(
            f"target.setting.{name}.name = {variable!r} is not passed on", remedy="Give the service another variable."
        )


def _check_places(target: TargetTable) -> None:
    known = OWN | target.setting.keys() | {f"{name}_file" for name in target.setting}
    for key, words in _texts(target):
        if unknown := [name for name in places(words) if name not in known]:
            raise StudyError(
                f"target.{key}: {{{unknown[0]}}} is not known",
                remedy=f"In braces there may be {', '.join(f'{{{name}}}' for name in sorted(known))}.",
            )


def _texts(target: TargetTable) -> Iterator[tuple[str, list[str]]]:
    """Where braces are filled, by key."""
    yield "command", target.command
    yield "environment", list(target.environment.values())
    ready = target.ready
    if ready is not None:
        yield "ready", [ready.http, ready.tcp, *ready.command]
    for name, table in target.setting.items():
        yield f"setting.{name}.command", table.command
        if table.read_back is not None:
            yield f"setting.{name}.read_back", [*table.read_back.command, table.read_back.json_, table.read_back.file]


def _knob(name: str, table: SettingTable) -> Knob:
    return Knob(
        name,
        tuple(table.values),
        None if table.low is None else table.low,
        None if table.high is None else table.high,
        raises=table.raises,
        gives_up=table.gives_up or None,
    )


def _program(target: TargetTable) -> Requirement:
    program = target.command[0]
    found = program if "/" in program or "{" in program else located(program)
    return Requirement(KIND, f"the program {program} (target.command)", found, f"{program}, or correct its name")


def _packages(target: TargetTable) -> list[Requirement]:
    """What edits the files that it names."""
    tables = (table for table in target.setting.values() if table.file and table.key)
    needed = dict.fromkeys(table.format or ENDINGS.get(Path(table.file).suffix.lower(), "") for table in tables)
    return [python_package(KIND, PACKAGES[each], "service") for each in needed if each in PACKAGES]


def _notes(target: TargetTable) -> Iterator[str]:
    """What a study of it cannot check, in words."""
    unread = [name for name in target.setting if target.setting[name].read_back is None and name in target.settings]
    if unread:
        yield (
            f"Not read back: {', '.join(unread)}. The value in use is taken to be the one that was asked for "
            "(target.setting.NAME.read_back says where to read it)."
        )
