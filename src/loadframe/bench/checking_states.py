"""Whether a study's alternatives, the changes of its ladder, and changes of a running service are possible."""

from collections.abc import Sequence

from loadframe.bench.attached import is_dynamic, process_settings
from loadframe.bench.rig import kinds_of
from loadframe.connections.address import is_here
from loadframe.errors import MissingTool, StudyError
from loadframe.host.environment import located
from loadframe.host.processes import available_cpus
from loadframe.kinds import registry as targets
from loadframe.kinds.service.discovery import where
from loadframe.study import Study
from loadframe.study.cage_tables import ChangeCage, ComponentCage
from loadframe.study.declaration import AlternativeTarget
from loadframe.workloads.base import AsksForObjects, Workload


def check_alternatives(study: Study, workload: Workload) -> None:
    if study.measure.cold:
        _check_cold(study, workload)
    for alternative in study.alternative:
        whose, kind = f"alternative {alternative.name!r}", alternative.target.kind or study.target.kind
        if kind != study.target.kind:
            _check_other_kind(study, workload, whose, alternative.target)
        elif alternative.target.shards is not None or alternative.target.sql_nodes is not None:
            raise StudyError(
                f"{whose} has a number of pieces, and is of the study's own kind, {kind}: how many there are is fixed",
                remedy="Leave out its target.shards and target.sql_nodes, or give it a study of its own.",
            )
        own = study.target.settings if kind == study.target.kind else {}
        row = targets.of_study(study.around(kind))
        try:
            row.check_settings({**own, **alternative.target.settings})
        except StudyError as error:
            raise StudyError(f"{whose}: {error.fact}", remedy=error.remedy) from error
        _check_cage_of(study.around(kind), whose, alternative.cage)


def _check_cold(study: Study, workload: Workload) -> None:
    if others := [kind for kind in kinds_of(study) if not targets.kind_named(kind).cache]:
        raise StudyError(
            f"measure.cold: a {others[0]} is not a cache, so it is never cold",
            remedy="Omit it, or compare caches: "
            f"{', '.join(kind for kind, row in sorted(targets.KINDS.items()) if row.cache)}.",
        )
    if not study.alternative or not isinstance(workload, AsksForObjects):
        raise StudyError(
            "measure.cold: it is alternatives that are compared cold, on the axis working_set",
            remedy='Omit it, or add an [[alternative]] and set load.axis = "working_set".',
        )


def check_changes(study: Study) -> None:
    """Each must be possible on top of all before it."""
    row = targets.of_study(study)
    settings = row.check_settings(study.target.settings)
    limits, cpus, host = dict(study.target_limits), dict(study.target_cpus), dict(study.host.settings)
    for change in study.change:
        after = row.check_settings({**settings, **change.target.settings})
        others = {**limits, **change.cage.limits}, {**cpus, **change.cage.bound}, {**host, **change.host.settings}
        if (after, *others) == (settings, limits, cpus, host):
            raise StudyError(
                f"change {change.name!r} changes nothing: the state before it has these values already",
                remedy="Omit it, or give it other values.",
            )
        _check_cage_of(study, f"change {change.name!r}", change.cage)
        given_up = row.gives_up(change.target.settings)
        if given_up is not None and study.remedies.durability == "keep":
            raise StudyError(
                f'change {change.name!r} gives up durability ({given_up}), and the study says durability = "keep"',
                remedy='Omit it, or set remedies.durability = "relax".',
            )
        settings, (limits, cpus, host) = after, others


def _check_cage_of(study: Study, whose: str, cage: ChangeCage) -> None:
    kind = study.target.kind
    if targets.kind_named(kind).by_address is not None:
        raise StudyError(
            f"{whose}: a running server cannot be changed", remedy="Change it yourself, and compare two runs."
        )
    embedded = targets.kind_named(kind).embedded
    if ((cage.limits or cage.bound) and embedded) or ("cage.cpus" in cage.bound and study.target.shards is not None):
        what = "runs inside the driver's processes" if embedded else "is made of several pieces"
        named = ", ".join(f"cage.{name}" for name in sorted(cage.model_fields_set))
        raise StudyError(
            f"{whose} changes {named} of {kind}, which {what}", remedy="Change settings of the target only."
        )
    for cpus in cage.bound.values():
        available_cpus(cpus)
    check_nice(study, whose, cage.nice)


def check_nice(study: Study, whose: str, nice: int | None) -> None:
    if nice is not None and not study.target.is_running:
        raise StudyError(
            f"{whose}: nice = {nice} is for a running server (target.attach)",
            remedy="Omit it: a server of our own has what [cage] allows.",
        )


def _check_other_kind(study: Study, workload: Workload, whose: str, target: AlternativeTarget) -> None:
    kind = target.kind or study.target.kind
    around = study.around(kind)
    row = targets.KINDS.get(kind)
    if row is not None and row.before and target.shards is None:
        raise StudyError(
            f"{whose}: a {kind} is made of several pieces, and the study does not say how many",
            remedy="Add target.shards to the alternative.",
        )
    if not loads(workload, kind, around.target.form):
        raise StudyError(
            f"{whose}: workload {study.workload.kind!r} cannot load a target of kind {around.target.form!r}",
            remedy=f"It loads: {', '.join(sorted(loaded_by(workload)))}.",
        )
    alone = [candidate for candidate in (study.target.kind, kind) if targets.kind_named(candidate).embedded]
    if alone or study.target.shards is not None:
        what = f"{alone[0]}, which runs inside the driver's processes," if alone else "a target in several pieces"
        raise StudyError(
            f"{whose}: {what} cannot be measured side by side with another kind of target",
            remedy="Give each a study of its own, and compare the two runs."
            if alone
            else f"Make {kind} the study's target, and {study.target.kind} its alternative.",
        )
    if (target.shards, target.sql_nodes) != (around.target.shards, around.target.sql_nodes):
        raise StudyError(
            f"{whose}: another alternative of kind {kind} has another number of pieces",
            remedy="Give all of a kind the same target.shards and target.sql_nodes: they are one, in several states.",
        )
    if target.shards is not None and is_limited(study.cage) and "shard" not in study.cage.components:
        raise StudyError(
            f"{whose}: [cage] limits the study's target, and a {kind} has a cage for each of its pieces",
            remedy="Say in [cage.shard] what each may have; the limits of [cage] are not shared out.",
        )


def is_limited(cage: ComponentCage) -> bool:
    return bool(cage.cpus or cage.group_limits() or cage.process_limits())


def loads(workload: Workload, kind: str, form: str) -> bool:
    """Whether the workload names the target's form, or the kind (or its shards) names the workload. True for an unknown
    kind, which is refused elsewhere."""
    if form in workload.target_kinds:
        return True
    row = targets.KINDS.get(kind)
    return row is None or (workload.kind in row.loaded_by and (form == kind) is not bool(row.before))


def loaded_by(workload: Workload) -> frozenset[str]:
    naming = {kind: row for kind, row in targets.KINDS.items() if workload.kind in row.loaded_by}
    return workload.target_kinds | {f"sharded {kind}" if row.before else kind for kind, row in naming.items()}


OWN = "set target.owned = true if it is yours"


def check_running_service(study: Study) -> None:
    target = study.target
    if given := [name for name in ("attach", "option_file", "config") if getattr(target, name)]:
        raise StudyError(f"target.{given[0]} is for a running database", remedy="Omit it.")
    if target.listen is not None and not is_here(host := where(str(target.listen))[0], afresh=True):
        raise StudyError(
            f"target.listen: {host} is not this machine, so no process of it is seen",
            remedy='Load it by its address: kind = "url".',
        )
    if target.shards is not None or len(kinds_of(study)) > 1:
        raise StudyError(
            "a running service is measured alone", remedy="Leave out target.shards and alternatives of another kind."
        )
    check_groups(study, "service", "Of one that is yours")
    if target.restart and located(target.restart[0]) is None:
        raise MissingTool(f"target.restart: there is no program {target.restart[0]}", remedy="Correct its name.")
    named = process_settings(study)
    check_allowed(study, named, "service", "")
    if named and target.restart:
        raise ends_with(named)
    if named and not target.owned:
        raise StudyError(f"the study changes {named[0]} of a running service", remedy=f"Omit it, or {OWN}.")
    row, tables = targets.of_study(study), [state.target.settings for state in (*study.alternative, *study.change)]
    stated = row.check_settings(target.settings)
    for table in tables:
        for name, value in row.check_settings(table).items():
            if stated.get(name) != value:
                _check_change(study, name)


def check_groups(study: Study, what: str, of_what: str) -> None:
    if grouped := list(study.cage.group_limits()):
        raise StudyError(
            f"cage: a running {what} cannot be moved into control groups ({grouped[0]})",
            remedy=f"{of_what} there may be cage.cpus, cage.nice and cage.open_files; [cage.driver] may have all.",
        )


def check_allowed(study: Study, named: Sequence[str], what: str, condition: str) -> None:
    """StudyError without the permission to change a process. named: settings of processes."""
    if named and "process" not in study.remedies.allow:
        raise StudyError(
            f"the study changes {named[0]} of a running {what}, and remedies.allow does not name that",
            remedy=f'{condition}remedies.allow = ["target", "process"]. It is put back at the end.',
        )


def ends_with(named: Sequence[str]) -> StudyError:
    return StudyError(
        f"target.restart: the study changes {named[0]} too, which would end with the processes",
        remedy="Give each a study of its own.",
    )


def _check_change(study: Study, name: str) -> None:
    row, table = targets.of_study(study), study.target.setting[name]
    if not (study.target.owned or study.target.restart):
        raise StudyError(f"the study changes {name} of a running service", remedy=f"Omit it, or {OWN}.")
    if not is_dynamic(row, name):
        raise StudyError(
            f'{name}: a running service takes a setting by apply = "command" only, or by a key of a file with '
            "target.restart",
            remedy="Let Loadframe start a service of its own (target.command), or change it by hand.",
        )
    if table.read_back is None:
        raise StudyError(
            f"target.setting.{name} has no read_back: what a running service has must be known to be put back",
            remedy="Say where its value is read.",
        )
