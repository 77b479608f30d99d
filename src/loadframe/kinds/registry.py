"""Every kind of target by its name. Nothing is added here: a kind registers itself in `kinds/NAME/kind.py`, one of
another distribution by an entry point of the group `loadframe.kinds`; see docs/writing-a-target.md."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from loadframe import kinds
from loadframe.entry_points import KINDS_GROUP, Flaw, Registry
from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target, shard_name
from loadframe.kinds.kind import KindOfTarget
from loadframe.knowledge.kinds import flaw
from loadframe.model import Requirement
from loadframe.study.declaration import StateTable, Study, TargetTable

State = TypeVar("State", bound=StateTable)


def _own() -> Iterator[KindOfTarget]:
    folders = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__) if module.ispkg)
    return (record for name in folders for record in import_module(f"{kinds.__name__}.{name}.kind").KINDS)


def _flaw(record: KindOfTarget) -> Flaw | None:
    """What is wrong with a kind of another distribution: with a row of its pages, or with its tunables."""
    if unknown := [row.name for row in record.tunables if record.catalogue.get(row.name) is None]:
        return Flaw(f"its tunables name {unknown[0]!r}, which is not in its catalogue of settings")
    if record.tunables and record.file is None:
        return Flaw("it has tunables, and no `file` that says how what `tune` finds is written")
    return flaw(record.kind)


KINDS = Registry(KINDS_GROUP, KindOfTarget, _own, _flaw)


def make(kind: str, *, lease: Lease, resources: Resources) -> Target:
    """A target of this kind that keeps its data in the lease's folder. StudyError for an unknown kind."""
    return kind_named(kind).make(lease, resources)


def make_shards(kind: str, *, lease: Lease, resources: Mapping[str, Resources]) -> Target:
    """A target of this kind in several pieces; resources: by its `components`. StudyError where there is none."""
    made = kind_named(kind).make_shards
    if made is None:
        sharded = sorted(name for name, row in KINDS.items() if row.make_shards is not None)
        raise StudyError(
            f"target.shards: a {kind} cannot have several pieces",
            remedy=f"Omit it; these kinds can: {', '.join(sharded)}.",
        )
    return made(lease, resources)


def components(kind: str, shards: int | None, sql_nodes: int | None = None) -> tuple[str, ...]:
    """The components of a target: "target" alone, or its pieces. StudyError for an unknown kind."""
    if shards is None:
        return ("target",)
    row = kind_named(kind)
    more = row.more_before[: (sql_nodes or 1) - 1]
    return (*row.before, *more, *(shard_name(number) for number in range(1, shards + 1)))


def of_study(study: Study, kind: str = "") -> KindOfTarget:
    """The record of a kind as a study declares it: its target's, or another one that it names. StudyError."""
    named, target = kind or study.target.kind, study.target
    row = kind_named(named)
    if named == target.kind and target.sql_nodes is not None and not row.more_before:
        kinds = " or ".join(sorted(name for name, record in KINDS.items() if record.more_before))
        raise StudyError(
            f"target.sql_nodes is for a target of kind {kinds}, and this one is of kind {named}",
            remedy=f"Omit it, or set target.kind to {kinds}.",
        )
    if row.declared is not None:
        return row.declared(row, target if named == target.kind else TargetTable(kind=named))
    if named == target.kind and (given := target.service_keys):
        kinds = " or ".join(sorted(name for name, record in KINDS.items() if record.declared is not None))
        raise StudyError(
            f"target.{given[0]} is for a target of kind {kinds}, and this one is of kind {named}",
            remedy=f"Omit it, or set target.kind to {kinds}.",
        )
    return row


def canonical(study: Study) -> Study:
    """The study with all settings in the form in which `effective` answers; all later code relies on it. StudyError."""
    target = study.target.model_copy(update={"settings": of_study(study).check_settings(study.target.settings)})
    tables = {
        name: [_with_canonical(study, table) for table in getattr(study, name)] for name in ("alternative", "change")
    }
    return study.model_copy(update={"target": target, **tables})


def _with_canonical(study: Study, table: State) -> State:
    row = of_study(study, getattr(table.target, "kind", None) or "")
    settings = row.check_settings(table.target.settings)
    return table.model_copy(update={"target": table.target.model_copy(update={"settings": settings})})


def requirements(kind: str) -> list[Requirement]:
    """What a kind needs on this machine, and whether it is available. StudyError for an unknown kind."""
    return needs(kind_named(kind))


def needs(row: KindOfTarget) -> list[Requirement]:
    """As `requirements`, of a kind as a study declares it."""
    return KINDS.needs(row.kind, lambda _: row.requirements())


def check() -> list[Requirement]:
    """What every kind needs, without repetitions; unusable kinds of other distributions count as missing."""
    needed = [requirement for kind in KINDS for requirement in requirements(kind)]
    return list(dict.fromkeys((*needed, *(broken.requirement() for broken in KINDS.broken()))))


def kind_named(kind: str) -> KindOfTarget:
    """The record of a kind. StudyError for an unknown or unusable one."""
    row = KINDS.get(kind)
    if row is not None:
        return row
    if (broken := KINDS.why_not(kind)) is not None:
        raise broken.error("target.kind")
    raise StudyError(f"target.kind = {kind!r} is not known", remedy=f"Known kinds: {', '.join(sorted(KINDS))}.")
