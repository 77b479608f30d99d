"""A service of the user's own, as a kind of target, with the settings that the study declares."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from loadframe.connections.address import parted
from loadframe.errors import StudyError
from loadframe.host.environment import located, python_package
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target
from loadframe.kinds.kind import OF_STUDY, KindOfTarget
from loadframe.kinds.service.discovery import where
from loadframe.kinds.service.file_settings import ENDINGS, PACKAGES
from loadframe.kinds.service.placeholders import CATALOGUE, KIND, PLACE, catalogue, knob_of, places, texts_of, tunable
from loadframe.kinds.service.read_back import FORM
from loadframe.kinds.service.target import RunningService, ServiceTarget
from loadframe.metrics.exposed import OF
from loadframe.model import Requirement
from loadframe.study.declaration import TargetTable
from loadframe.study.exposed_tables import address_of
from loadframe.study.service_tables import SettingTable

OWN = frozenset({"port", "data", "file", "value"})
PATH = re.compile(r"/[!-~]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOT_READ_BACK = (
    "Not read back: {}. The value in use is taken to be the one that was asked for (target.setting.NAME.read_back says "
    "where to read it)."
)
NO_COMMAND = 'For example command = ["python3", "app.py", "--port", "{port}"].'


def as_declared(row: KindOfTarget, target: TargetTable) -> KindOfTarget:
    """StudyError for contradictions."""
    check(target)
    unread = [name for name in target.setting if target.setting[name].read_back is None and name in target.settings]
    limits = {limit.raises: f"{OF}{limit.name}" for limit in target.limit if limit.raises}
    knobs = tuple(knob_of(name, table, limits.get(name, "")) for name, table in target.setting.items())
    by_file = {name for name, table in target.setting.items() if table.key and target.restart}
    by_command = {name for name, table in target.setting.items() if table.apply == "command"} | by_file
    dynamic = (
        by_command if target.is_running else {name for name, table in target.setting.items() if not table.restarts}
    )
    known = catalogue((knob, knob.name in dynamic) for knob in knobs)
    edited = (table for table in target.setting.values() if table.file and table.key)
    formats = dict.fromkeys(table.format or ENDINGS.get(Path(table.file).suffix.lower(), "") for table in edited)
    packages = [PACKAGES[format_] for format_ in formats if format_ in PACKAGES]
    return replace(
        row,
        make=lambda lease, resources: ServiceTarget(target, known, lease, resources),
        catalogue=known,
        check_settings=known.check,
        requirements=lambda: (
            []
            if target.is_running
            else [_program(target.command[0]), *(python_package(KIND, package, "service") for package in packages)]
        ),
        tunables=tuple(tunable(knob) for knob in knobs),
        file=OF_STUDY,
        knobs=knobs,
        notes=(NOT_READ_BACK.format(", ".join(unread)),) if unread else (),
        running=RunningService,
    )


def check(target: TargetTable) -> None:
    """StudyError for a service that cannot be started, or found, as it is declared."""
    named = [name for name in ("command", "pid", "unit", "container") if getattr(target, name)]
    if not named and target.listen is None:
        raise StudyError(f"a target of kind {KIND} has no target.command", remedy=NO_COMMAND)
    if len(named) > 1:
        raise StudyError(f"target.{named[0]} and target.{named[1]} name two services", remedy="Give one of them.")
    for name, table in target.setting.items():
        if name in OWN:
            raise StudyError(
                f"target.setting.{name}: {{{name}}} has a meaning of its own in commands", remedy="Call it otherwise."
            )
        _check_setting(name, table)
    if unknown := [limit for limit in target.limit if limit.raises and limit.raises not in target.setting]:
        raise StudyError(
            f"target.limit {unknown[0].name}: raise = {unknown[0].raises!r} is not a setting of this study",
            remedy=f"Declare [target.setting.{unknown[0].raises}], or omit it.",
        )
    _check_places(target)
    _check_addresses(target)
    if target.is_running:
        _check_running(target)
    elif "port" not in places([*target.command, *target.environment.values()]) and target.listen is None:
        raise StudyError(
            "target.command has no {port}, and nothing else says at which port the service listens",
            remedy=f"{NO_COMMAND} Or say which port it takes: target.listen = 8080.",
        )
    wrong = next((path for path in target.paths.split() if PATH.fullmatch(path) is None), None)
    if wrong is not None:
        raise StudyError(f"target.paths: {wrong!r} is not a path", remedy="Paths begin with /, as in '/ /about'.")


def _check_running(target: TargetTable) -> None:
    started: dict[str, object] = {"environment": target.environment, "folder": target.folder, "ready": target.ready}
    started["with.command"] = [helper for helper in target.with_ if helper.command]
    if given := [name for name, value in started.items() if value]:
        raise StudyError(f"target.{given[0]} is of a service that Loadframe starts", remedy="Omit it.")
    if target.listen is not None:
        where(str(target.listen))
    if target.restart and target.pid is not None:
        raise StudyError(
            "target.pid: a service that is restarted has another one", remedy="Name it by listen, unit or container."
        )
    for name, table in target.setting.items():
        if table.file and not Path(table.file).is_absolute():
            raise StudyError(
                f"target.setting.{name}.file = {table.file!r} is not an absolute path", remedy="Begin it with /."
            )


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
    helpers = {f"{helper.name.replace('-', '_')}_port" for helper in target.with_ if helper.command}
    known = OWN | target.setting.keys() | {f"{name}_file" for name in target.setting} | helpers
    passed = {f"with.{helper.name}": helper.pass_environment for helper in target.with_}
    for key, words in _texts(target):
        variables = {f"ENV:{name}" for name in passed.get(key, target.pass_environment)}
        unknown = [name for name in places(words) if name not in known | variables]
        if unknown and unknown[0].startswith("ENV:"):
            raise StudyError(
                f"target.{key}: {{{unknown[0]}}} names a variable that is not passed on",
                remedy=f'Add it: pass_environment = ["{unknown[0].removeprefix("ENV:")}"].',
            )
        if unknown:
            raise StudyError(
                f"target.{key}: {{{unknown[0]}}} is not known",
                remedy=f"In braces there may be {', '.join(f'{{{name}}}' for name in sorted(known | variables))}.",
            )


def _check_addresses(target: TargetTable) -> None:
    """StudyError for those that would never answer, whatever values their braces get."""
    read_backs = ((f"setting.{name}.read_back", table.read_back) for name, table in target.setting.items())
    urls = [(key, table.json_) for key, table in read_backs if table is not None and table.json_]
    urls += [("ready", target.ready.http)] if target.ready is not None and target.ready.http else []
    for key, url in urls:
        try:
            address_of(PLACE.sub("1", url))
        except ValueError as error:
            raise StudyError(f"target.{key}: {url!r} is not http://HOST:PORT/PATH", remedy=FORM) from error
    if target.ready is not None and target.ready.tcp:
        try:
            parted(PLACE.sub("1", target.ready.tcp), "")
        except StudyError as error:
            raise StudyError(
                f"target.ready: {target.ready.tcp!r} is not HOST:PORT", remedy='For example "127.0.0.1:{port}".'
            ) from error


def _texts(target: TargetTable) -> Iterator[tuple[str, list[str]]]:
    yield "command", target.command
    yield "environment", list(target.environment.values())
    ready = target.ready
    if ready is not None:
        yield "ready", [ready.http, ready.tcp, *ready.command]  # a log may have braces of its own
    for helper in target.with_:
        yield f"with.{helper.name}", texts_of(helper)
    for name, table in target.setting.items():
        yield f"setting.{name}.command", table.command
        if table.read_back is not None:
            yield f"setting.{name}.read_back", [*table.read_back.command, table.read_back.json_, table.read_back.file]


def _program(program: str) -> Requirement:
    path = program if "/" in program or "{" in program else located(program)
    return Requirement(KIND, f"the program {program} (target.command)", path, f"{program}, or correct its name")


def undeclared(lease: Lease, resources: Resources) -> Target:
    raise StudyError(f"a target of kind {KIND} has no target.command", remedy=NO_COMMAND)


KINDS = (
    KindOfTarget(KIND, undeclared, CATALOGUE, CATALOGUE.check, list, declared=as_declared, again=RunningService.again),
)
