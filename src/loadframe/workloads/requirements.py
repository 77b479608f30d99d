"""What a workload needs on this machine, for `loadframe doctor` and for a clear refusal before anything starts."""

from __future__ import annotations

from loadframe.errors import MissingTool
from loadframe.host.environment import located
from loadframe.model import Requirement


def program(kind: str, name: str, package: str) -> Requirement:
    """A program on PATH, and the Debian package that has it."""
    return Requirement(kind, name, located(name), f"sudo apt-get install {package}")


def demand(requirements: tuple[Requirement, ...]) -> None:
    """MissingTool for the first requirement that is not there."""
    for requirement in requirements:
        if requirement.found is None:
            raise MissingTool(
                f"The workload {requirement.kind} needs {requirement.what}, which is not installed.",
                remedy=f"Install it: {requirement.how_to_get_it}",
            )
