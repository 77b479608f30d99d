"""A workload's registration record: `KIND` in its own module, or in another distribution by an entry point of the group
`loadframe.workloads`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loadframe.errors import MissingTool
from loadframe.host.environment import located
from loadframe.model import Knob, Requirement, SettingValue
from loadframe.workloads.base import Workload
from loadframe.workloads.options import OptionRule

Make = Callable[..., Workload]
"""Called with the options and the allowance; with Declared if the kind has `tables`, and `axis` if it has
`any_axis`."""


@dataclass(frozen=True)
class KindOfWorkload:
    """How a workload is made, its options (name -> rule, default), and its requirements. other_axes: how it is made for
    other load axes. tables: the tables of `[workload]` that it takes, by their names in Declared; a study with others
    is refused. required: tables and options that a study must give, whose defaults mean "missing". any_axis: the axis
    is the study's own word, and `make` takes it as `axis`. knobs: options that are part of what is studied, as the
    workers and the batch of a pipeline's stages; `raises` names the stage (pipeline.STAGE)."""

    kind: str
    make: Make
    options: Mapping[str, tuple[OptionRule, SettingValue]]
    requirements: Callable[[str], tuple[Requirement, ...]]
    other_axes: Mapping[str, Make] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    any_axis: bool = False
    knobs: tuple[Knob, ...] = ()


def program(kind: str, name: str, package: str) -> Requirement:
    """A program on PATH, and the Debian package that has it."""
    return Requirement(kind, name, located(name), f"sudo apt-get install {package}")


def demand(requirements: tuple[Requirement, ...]) -> None:
    """Raises MissingTool for the first requirement that is not there."""
    for requirement in requirements:
        if requirement.found is None:
            raise MissingTool(
                f"The workload {requirement.kind} needs {requirement.what}, which is not installed.",
                remedy=f"Install it: {requirement.how_to_get_it}",
            )
