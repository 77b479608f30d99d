"""What of our environment a service gets that Loadframe starts, its helpers, and the commands that the study names."""

import os
import re

from loadframe.errors import TargetError
from loadframe.host.environment import passed_on
from loadframe.masking import remember, secrets_in
from loadframe.study.declaration import TargetTable

NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
"""Of a variable of the environment, as it stands in the output of a program."""


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
    """What stands in braces for the variables that the study names, as ENV:NAME. TargetError as `passed`."""
    values = passed(target)
    return {f"ENV:{name}": values[name] for name in target.pass_environment}


def not_passed(target: TargetTable, said: str) -> str | None:
    """The variable of ours that the output of a program names, and that it does not get."""
    words, known = set(NAME.findall(said)), passed(target).keys() | target.environment.keys()
    return next((name for name in sorted(os.environ) if name in words and name not in known), None)
