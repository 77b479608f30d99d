"""What a workload needs on this machine, for `loadframe doctor` and for a clear refusal before anything starts."""

from __future__ import annotations

import importlib.util

from loadframe.errors import MissingTool
from loadframe.host.environment import located
from loadframe.model import Requirement


def program(kind: str, name: str, package: str) -> Requirement:
    """A program on PATH, and the Debian package that has it."""
    return Requirement(kind, name, located(name), f"sudo apt-get install {package}")


def python_package(kind: str, name: str, extra: str) -> Requirement:
    """A Python package, and the extra of Loadframe that brings it. It is looked for, not imported."""
    found = importlib.util.find_spec(name)
    where = found.origin if found else None
    return Requirement(kind, f"Python package {name}", where, f"pip install 'loadframe[{extra}]'")


def demand(requirements: tuple[Requirement, ...]) -> None:
    """MissingTool for the first requirement that is not there."""
    for requirement in requirements:
        if requirement.found is None:
            raise MissingTool(
                f"The workload {requirement.kind} needs {requirement.what}, which is not installed.",
                remedy=f"Install it: {requirement.how_to_get_it}",
            )
