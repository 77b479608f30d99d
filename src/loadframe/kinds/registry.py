"""Every kind of target by its name: of `kinds/NAME/kind.py`, or an entry point of the group `loadframe.kinds`."""

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from loadframe import kinds
from loadframe.entry_points import KINDS_GROUP, Flaw, Registry
from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Attached, ServerAddress, Target, shard_name
from loadframe.kinds.kind import Attachable, KindOfTarget
from loadframe.knowledge.families import FAMILIES
from loadframe.knowledge.kinds import flaw
from loadframe.model import Requirement
from loadframe.study.declaration import StateTarget, Study, TargetTable

Declared = TypeVar("Declared", TargetTable, StateTarget)
BY_OPTION, BY_STUDY = "--option-file or --user", "target.option_file"
READ_ONLY_REMEDY = "Change it by hand, or give the study a private server (leave out target.attach)."


def _own() -> Iterator[KindOfTarget]:
    folders = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__) if module.ispkg)
    return (record for name in folders for record in import_module(f"{kinds.__name__}.{name}.kind").KINDS)


def _flaw(record: KindOfTarget) -> Flaw | None:
    if unknown := [row.name for row in record.tunables if record.catalogue.get(row.name) is None]:
        return Flaw(f"its tunables name {unknown[0]!r}, which is not in its catalogue of settings")
    if record.tunables and record.file is None:
        return Flaw("it has tunables, and no `file` that says how what `tune` finds is written")
    return flaw(record.kind)


KINDS = Registry(KINDS_GROUP, KindOfTarget, _own, _flaw)


def make_shards(kind: str, *, lease: Lease, resources: Mapping[str, Resources]) -> Target:
    """resources: by `components` of the kind. StudyError where it cannot have several pieces."""
    made = kind_named(kind).make_shards
    if made is None:
        sharded = sorted(name for name, row in KINDS.items() if row.make_shards is not None)
        raise StudyError(
            f"target.shards: a {kind} cannot have several pieces",
            remedy=f"Omit it; these kinds can: {', '.join(sharded)}.",
        )
    return made(lease, resources)


def components(kind: str, shards: int | None, sql_nodes: int | None = None) -> tuple[str, ...]:
    """Only "target", or its pieces. StudyError for an unknown kind."""
    if shards is None:
        return ("target",)
    row = kind_named(kind)
    more = row.more_before[: (sql_nodes or 1) - 1]
    return (*row.before, *more, *(shard_name(number) for number in range(1, shards + 1)))


def of_study(study: Study, kind: str = "") -> KindOfTarget:
    """A kind as the study declares it: its target's, or another one that it names. StudyError."""
    named, target = kind or study.target.kind, study.target
    row = kind_named(named)
    if named == target.kind and target.sql_nodes is not None and not row.more_before:
        raise _for_others("sql_nodes", named, lambda record: bool(record.more_before))
    if row.declared is not None:
        return row.declared(row, target if named == target.kind else TargetTable(kind=named))
    if named == target.kind and (given := target.service_keys):
        raise _for_others(given[0], named, lambda record: record.declared is not None)
    return row


def _for_others(key: str, kind: str, has_it: Callable[[KindOfTarget], bool]) -> StudyError:
    kinds = " or ".join(sorted(name for name, record in KINDS.items() if has_it(record)))
    return StudyError(
        f"target.{key} is for a target of kind {kinds}, and this one is of kind {kind}",
        remedy=f"Omit it, or set target.kind to {kinds}.",
    )


def canonical(study: Study) -> Study:
    """The study with all settings in the form in which `effective` answers; all later code relies on it. StudyError."""

    def checked(target: Declared) -> Declared:
        row = of_study(study, getattr(target, "kind", None) or "")
        return target.model_copy(update={"settings": row.check_settings(target.settings)})

    tables = {
        name: [table.model_copy(update={"target": checked(table.target)}) for table in getattr(study, name)]
        for name in ("alternative", "change")
    }
    return study.model_copy(update={"target": checked(study.target), **tables})


def needs(row: KindOfTarget) -> list[Requirement]:
    return KINDS.needs(row.kind, lambda _: row.requirements())


def check() -> list[Requirement]:
    """What every kind needs, without repetitions; unusable kinds and families of metrics of other distributions count
    as missing."""
    needed = [requirement for row in KINDS.values() for requirement in needs(row)]
    return list(dict.fromkeys((*needed, *(broken.requirement() for broken in (*KINDS.broken(), *FAMILIES.broken())))))


def kind_named(kind: str) -> KindOfTarget:
    """StudyError for an unknown or unusable one."""
    if (row := KINDS.get(kind)) is not None:
        return row
    KINDS.refuse(kind, "target.kind")
    raise StudyError(f"target.kind = {kind!r} is not known", remedy=f"Known kinds: {', '.join(sorted(KINDS))}.")


def attachable(kind: str) -> Attachable | None:
    row = KINDS.get(kind)
    return None if row is None else row.attachable


def attachable_kinds() -> tuple[str, ...]:
    return tuple(sorted(kind for kind, row in KINDS.items() if row.attachable is not None))


def attach(where: str, *, option_file: Path | None = None, user: str = "", account: str = BY_OPTION) -> Attached:
    """Connect to KIND or KIND:ADDRESS, for example "mariadb:/run/mysqld/mysqld.sock". account: how the user names an
    account. StudyError for an unknown kind, TargetError where refused."""
    kind, _, address = where.partition(":")
    known = attachable(kind)
    if known is None:
        raise StudyError(
            f"{where!r} does not begin with a kind of server that Loadframe can attach to",
            remedy=f"Write KIND:ADDRESS; kinds: {', '.join(attachable_kinds())}.",
        )
    return known.attach(ServerAddress(address, option_file, user, account))


def again(address: Mapping[str, str]) -> Attached:
    """Connect again by what Attached.address gave. KeyError for an unknown kind; otherwise raises as `attach` does."""
    option_file = Path(address["option_file"]) if address["option_file"] else None
    known = attachable(address["kind"])
    if known is None:
        raise KeyError(address["kind"])
    number = address.get("number", "")  # records of former versions have none
    return known.attach(ServerAddress(address["address"], option_file, address["user"], BY_OPTION, number))
