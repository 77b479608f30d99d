"""Names in braces in a study's texts: {port}, {data}, a setting by its name, a variable of pass_environment as
{ENV:NAME}; a declared setting as a knob; and the environment that a service and its helpers get."""

import os
import re
from collections.abc import Iterable, Mapping

from loadframe.errors import TargetError
from loadframe.host.environment import passed_on
from loadframe.masking import remember, secrets_in
from loadframe.model import Knob, SettingValue
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import SettingTable, WithTable

PLACE = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*|ENV:[A-Za-z_][A-Za-z0-9_]*)\}")
"""Not `${name}`, which is a shell's."""


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each name in braces that has a value replaced."""
    return PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def places(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in braces, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in PLACE.findall(text)))


def texts_of(helper: WithTable) -> list[str]:
    """Where the braces of a helper are filled."""
    ready = [] if helper.ready is None else [helper.ready.http, helper.ready.tcp, *helper.ready.command]
    return [*helper.command, *helper.environment.values(), *ready]


NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
"""An environment variable in the output of a program."""


def passed(target: TargetTable) -> dict[str, str]:
    """The usual variables, and those that the study names. TargetError where one of these is not set."""
    if unset := [name for name in target.pass_environment if name not in os.environ]:
        raise TargetError(
            f"target.pass_environment: {unset[0]} is not set where Loadframe was called",
            remedy="Set it (export), or omit it.",
        )
    remember(secrets_in({name: os.environ[name] for name in target.pass_environment}))
    return passed_on(target.pass_environment)


def of_environment(target: TargetTable) -> dict[str, str]:
    """Values for the variables that the study names, as ENV:NAME. TargetError as `passed`."""
    values = passed(target)
    return {f"ENV:{name}": values[name] for name in target.pass_environment}


def not_passed(target: TargetTable, said: str) -> str | None:
    """A variable of ours that the output of a program mentions and that it does not get."""
    words, known = set(NAME.findall(said)), passed(target).keys() | target.environment.keys()
    return next((name for name in sorted(os.environ) if name in words and name not in known), None)


def knob_of(name: str, table: SettingTable, limit: str = "") -> Knob:
    """Of one table [target.setting.NAME]. limit: the id of the [[target.limit]] that names it."""
    values = tuple(table.values)
    if any(isinstance(value, str) for value in values) or len({isinstance(value, bool) for value in values}) > 1:
        values = tuple(map(shown, values))  # a number or a switch among words ("auto", 4): as the service is given it
    return Knob(name, values, table.low, table.high, raises=limit or table.raises, gives_up=table.gives_up or None)


def shown(value: SettingValue) -> str:
    """A value as the service is given it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
