"""What a workload needs on this machine, for `loadframe doctor` and for a clear refusal before anything starts."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass

from loadframe.errors import MissingTool


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing needed. found: where it is (None: not there). get: how to get it."""

    what: str
    found: str | None
    get: str


def program(name: str, package: str) -> Requirement:
    """A program on PATH, and the Debian package that has it."""
    return Requirement(name, shutil.which(name), f"sudo apt-get install {package}")


def python_package(name: str, extra: str) -> Requirement:
    """A Python package, and the extra of Loadframe that brings it. It is looked for, not imported."""
    found = importlib.util.find_spec(name)
    return Requirement(f"Python package {name}", found.origin if found else None, f"pip install 'loadframe[{extra}]'")


def demand(kind: str, requirements: tuple[Requirement, ...]) -> None:
    """MissingTool for the first requirement that is not there."""
    for requirement in requirements:
        if requirement.found is None:
            raise MissingTool(
                f"The workload {kind} needs {requirement.what}, which is not installed.",
                remedy=f"Install it: {requirement.get}",
            )
