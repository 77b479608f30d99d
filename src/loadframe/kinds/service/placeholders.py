"""What a study declares of a service: settings, names in braces ({port}, {data}, a setting, a variable of
pass_environment as {ENV:NAME}), environment."""

import os
import re
from collections.abc import Iterable, Mapping

from loadframe.errors import TargetError
from loadframe.host.environment import passed_on
from loadframe.kinds.catalogue import Catalogue, Kind, SettingSpec, Tunable
from loadframe.masking import remember, secrets_in
from loadframe.model import Knob, SettingValue
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import SettingTable, WithTable

PLACE = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*|ENV:[A-Za-z_][A-Za-z0-9_]*)\}")
"""Not `${name}`, which is a shell's."""
NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
KIND = "service"
SOURCE = "a service has the settings that its study declares: [target.setting.NAME]"
CATALOGUE = Catalogue(kind=KIND, source=SOURCE, specs=())


def filled(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def places(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for text in texts for name in PLACE.findall(text)))


def texts_of(helper: WithTable) -> list[str]:
    ready = [] if helper.ready is None else [helper.ready.http, helper.ready.tcp, *helper.ready.command]
    return [*helper.command, *helper.environment.values(), *ready]


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
    values = passed(target)
    return {f"ENV:{name}": values[name] for name in target.pass_environment}


def not_passed(target: TargetTable, said: str) -> str | None:
    """A variable of ours that the output of a program mentions and that it does not get."""
    words, known = set(NAME.findall(said)), passed(target).keys() | target.environment.keys()
    return next((name for name in sorted(os.environ) if name in words and name not in known), None)


def knob_of(name: str, table: SettingTable, limit: str = "") -> Knob:
    """The knob of a table [target.setting.NAME]. limit: the id of the [[target.limit]] that names it."""
    values = tuple(table.values)
    if any(isinstance(value, str) for value in values) or len({isinstance(value, bool) for value in values}) > 1:
        values = tuple(map(shown, values))  # a number or a switch among words ("auto", 4): as the service is given it
    return Knob(name, values, table.low, table.high, raises=limit or table.raises, gives_up=table.gives_up or None)


def shown(value: SettingValue) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _spec(knob: Knob, dynamic: bool) -> SettingSpec:
    types = {type(value) for value in knob.values or (knob.low or 0, knob.high or 0)}
    kind: Kind = "integer" if types == {int} else "number" if types <= {int, float} else "text"
    kind = "boolean" if types == {bool} else kind
    words = tuple(value for value in knob.values if isinstance(value, str | int) and not isinstance(value, bool))
    listed = kind in ("integer", "text") and len(words) == len(knob.values)
    numbers = [float(value) for value in knob.values if kind == "number"]
    return SettingSpec(
        knob.name,
        kind,
        dynamic,
        low=min(numbers) if numbers else knob.low,
        high=max(numbers) if numbers else knob.high,
        choices=words if listed else (),
        gives_up=knob.gives_up,
        safe=knob.values[:1],
        source=f"target.setting.{knob.name}",
    )


def tunable(knob: Knob) -> Tunable:
    if not knob.values:
        return Tunable(knob.name, low=knob.low or 0.0, high=knob.high)
    strict = len(knob.values) if knob.gives_up is None else 1
    return Tunable(knob.name, knob.values[:strict], relaxed=knob.values[strict:])


def catalogue(knobs: Iterable[tuple[Knob, bool]]) -> Catalogue:
    """The declared settings, each with whether it is dynamic."""
    return Catalogue(kind=KIND, source=SOURCE, specs=tuple(_spec(knob, dynamic) for knob, dynamic in knobs))
