"""What stands in braces in a command, an address or a template of a study: {port}, {data}, a setting by its name, a
variable of pass_environment as {ENV:NAME}."""

import re
from collections.abc import Iterable, Mapping

from loadframe.study.service_tables import WithTable

PLACE = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*|ENV:[A-Za-z_][A-Za-z0-9_]*)\}")
"""Not `${name}`, which is a shell's."""


def filled(text: str, values: Mapping[str, str]) -> str:
    """With a value in each place that has one; others stay as they are."""
    return PLACE.sub(lambda found: values.get(found[1], found[0]), text)


def places(texts: Iterable[str]) -> tuple[str, ...]:
    """The names that stand in braces, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in PLACE.findall(text)))


def texts_of(helper: WithTable) -> list[str]:
    """Where the braces of a helper are filled."""
    ready = [] if helper.ready is None else [helper.ready.http, helper.ready.tcp, *helper.ready.command]
    return [*helper.command, *helper.environment.values(), *ready]
