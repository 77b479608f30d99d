"""Every workload by its kind, of its own module or an entry point of the group `loadframe.workloads`. All functions
raise StudyError for an unknown kind."""

import pkgutil
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module

from loadframe import workloads
from loadframe.entry_points import WORKLOADS_GROUP, Registry
from loadframe.errors import StudyError
from loadframe.formats.said import did_you_mean
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Knob, Requirement, SettingValue
from loadframe.workloads.base import KindOfWorkload, Workload

NO_COMMAND = 'Name the program, for example command = ["python3", "driver.py"].'


def _own() -> Iterator[KindOfWorkload]:
    for name in sorted(entry.name for entry in pkgutil.iter_modules(workloads.__path__)):
        module = import_module(f"{workloads.__name__}.{name}")
        yield from (record for record in vars(module).values() if isinstance(record, KindOfWorkload))


KINDS = Registry(WORKLOADS_GROUP, KindOfWorkload, _own)


def make(
    kind: str,
    options: Mapping[str, SettingValue],
    allowance: Allowance | None = None,
    *,
    axis: str | None = None,
    declared: Declared | None = None,
) -> Workload:
    """allowance: None: it is never started. axis: None: its usual one. declared: None: no study. StudyError for an
    option or table that does not fit or, in a study, is missing."""
    known = _kind(kind)
    if declared is not None:
        _check_required(known, options, declared)
    declared = declared or Declared()
    if others := [name for name in declared.given if name not in known.tables]:
        takers = [name for name, row in KINDS.items() if others[0] in row.tables]
        raise StudyError(
            f"workload.{others[0]}: the workload {kind} does not take it.",
            remedy=f"Omit it, or choose a workload that does: {', '.join(takers) or 'none here does'}.",
        )
    made = known.other_axes.get(axis or "", known.make)
    if known.any_axis and axis is not None:
        made = partial(made, axis=axis)
    return made(options, allowance, declared) if known.tables else made(options, allowance)


def _check_required(known: KindOfWorkload, options: Mapping[str, SettingValue], declared: Declared) -> None:
    for name in known.required:
        rule, default = known.options.get(name, (None, None))
        if name in declared.given or (rule is not None and options.get(name, default) != default):
            continue
        key = f"workload.options.{name}" if rule is not None else f"workload.{name}"
        raise StudyError(
            f"{key} is missing: the workload {known.kind} has no default for it.",
            remedy=f"Give {key}: {rule.right}; {rule.what}." if rule is not None else NO_COMMAND,
        )


def knobs(kind: str, axis: str) -> tuple[Knob, ...]:
    """The knobs without the load axis."""
    return tuple(knob for knob in _kind(kind).knobs if knob.name != axis)


def options(kind: str, given: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """As given or by default."""
    return {name: given.get(name, default) for name, (_, default) in _kind(kind).options.items()}


def has_axis(kind: str, axis: str) -> bool:
    return _kind(kind).any_axis or axis in axes(kind)


def axes(kind: str) -> frozenset[str]:
    return _kind(kind).make({}, None).axes | _kind(kind).other_axes.keys()


def check(*kinds: str) -> list[Requirement]:
    """What these kinds (none: all, with broken ones of other distributions) need on the machine."""
    for kind in kinds:
        _kind(kind)
    needed = [
        requirement
        for kind in kinds or KINDS
        for requirement in KINDS.needs(kind, lambda row: row.requirements(row.kind))
    ]
    return needed if kinds else [*needed, *(broken.requirement() for broken in KINDS.broken())]


def _kind(kind: str) -> KindOfWorkload:
    if (row := KINDS.get(kind)) is not None:
        return row
    KINDS.refuse(kind, "workload.kind")
    raise StudyError(
        f"There is no workload {kind!r}.",
        remedy=f"{did_you_mean(kind, list(KINDS))}workload.kind must be one of: {', '.join(KINDS)}.",
    )
