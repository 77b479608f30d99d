"""Whether a study fits together, before anything is started: kinds, axis, levels, settings, cage."""

import resource
import shutil
from functools import partial
from pathlib import Path

from loadframe.bench.attached import is_dynamic, process_settings
from loadframe.bench.checking_states import (
    check_allowed,
    check_alternatives,
    check_changes,
    check_groups,
    check_nice,
    check_running_service,
    ends_with,
    is_limited,
    loaded_by,
    loads,
)
from loadframe.bench.declared import workload_of
from loadframe.bench.rig import check_host, kinds_of
from loadframe.cages import groups
from loadframe.cages.cage import LIMITS
from loadframe.connections.address import is_here
from loadframe.entry_points import FAMILIES_GROUP, not_installed
from loadframe.errors import MissingTool, StudyError, UserError, check_all
from loadframe.host.processes import available_cpus
from loadframe.kinds import registry as targets
from loadframe.kinds.registry import READ_ONLY_REMEDY
from loadframe.knowledge.families import FAMILIES
from loadframe.recording.socket_sampling import port_range
from loadframe.study import Study
from loadframe.units import show
from loadframe.workloads import databases, http_driver
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import HasUsers, SendsRequests, Workload
from loadframe.workloads.http import Http


def check_study(study: Study, *, target_here: bool = True, driver_here: bool = True) -> None:
    """StudyError for a study that cannot be carried out, CageError for unavailable CPUs, MissingTool. target_here,
    driver_here: whether each runs on this machine."""
    of_target = (_check_attached, _check_settings, _check_embedded, _check_address, _check_metrics, check_host)
    cages = partial(_check_cages, target_here=target_here)
    check_all(partial(check, study) for check in (_check_workload, *of_target, cages))
    workload = workload_of(study)
    check_alternatives(study, workload)
    check_changes(study)
    if driver_here and isinstance(workload, Http):
        _check_driver(study, workload)
    _check_programs(study, target_here=target_here, driver_here=driver_here)


def _check_workload(study: Study) -> None:
    """The axis first: without it there is no workload to check."""
    if not workloads.has_axis(study.workload.kind, study.load.axis):
        axes = workloads.axes(study.workload.kind)
        raise StudyError(
            f"workload {study.workload.kind!r} has no axis {study.load.axis!r}",
            remedy=f"load.axis may be: {', '.join(sorted(axes))}.",
        )
    workload = workload_of(study)
    of_workload = (_check_loads, _check_times, _check_requests, _check_think)
    levels = (partial(workload.check_level, level) for level in study.levels)
    check_all((*(partial(check, study, workload) for check in of_workload), *levels))


def _check_settings(study: Study) -> None:
    targets.of_study(study).check_settings(study.target.settings)


def _check_embedded(study: Study) -> None:
    if study.cage.open_files is not None and targets.of_study(study).embedded:
        raise StudyError(
            f"cage.open_files has no meaning for {study.target.kind}, which runs inside the driver's processes",
            remedy="Omit it.",
        )


def _check_metrics(study: Study) -> None:
    check_stages(study)
    if study.target.metrics:
        check_consent(study)
    elif study.target.limit:
        first = study.target.limit[0]
        raise StudyError(
            f"target.limit {first.name} speaks of {first.use}, and nothing says where the service reports that.",
            remedy="Declare its counters: [[target.metrics]], with prometheus, json or command.",
        )


def _check_loads(study: Study, workload: Workload) -> None:
    kind, form, axis = study.workload.kind, study.target.form, study.load.axis
    if study.target.attach is not None and targets.kind_named(study.target.kind).one_system:
        form = f"sharded {study.target.kind}"  # in an unknown number of pieces
    if loads(workload, study.target.kind, form):
        return
    known = {name: workload_of(study, axis=name) for name in sorted(workloads.axes(kind))}
    others = [name for name, other in known.items() if loads(other, study.target.kind, form)]
    raise StudyError(
        f"workload {kind!r} cannot load a target of kind {form!r}" + (f" on the axis {axis!r}" if others else ""),
        remedy=(f"On these axes it can: {', '.join(others)}. On {axis} it" if others else "It")
        + f" loads: {', '.join(sorted(loaded_by(workload)))}.",
    )


def _check_driver(study: Study, workload: Http) -> None:
    clients = max(workload.clients(int(level)) for level in study.levels)
    needed = http_driver.open_files(clients)
    may = study.cage.driver.open_files or resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if needed > may:
        raise StudyError(
            f"the load driver needs {needed:,} open files for {clients:,} clients, and its limit is {may:,}",
            remedy=f"Set cage.driver.open_files = {needed}, call `ulimit -n {needed}` before, or lower load.levels.",
        )
    if 0 < (ports := port_range()) < clients:
        raise StudyError(
            f"{clients:,} clients of one server need as many local ports, and this machine has {ports:,}",
            remedy="Widen net.ipv4.ip_local_port_range, or lower load.levels.",
        )


def _check_requests(study: Study, workload: Workload) -> None:
    running = study.target.attach is not None or targets.kind_named(study.target.kind).by_address is not None
    if isinstance(workload, SendsRequests):
        workload.check_requests(running=running)


def _check_times(study: Study, workload: Workload) -> None:
    """A burst is measured from its first judged request to its last, however long that takes."""
    if workload.runs_to_completion and (stated := study.measure.stated_times):
        raise StudyError(
            f"measure.{stated[0]} has no meaning for workload {workload.kind!r}: its steps end when their work is done",
            remedy="Omit it. load.levels and workload.options say how much work a step is.",
        )


def _check_think(study: Study, workload: Workload) -> None:
    """A user sends less than one request per think time, so a step may have none. Recorded sessions are exempt."""
    if study.workload.think_time is None or not isinstance(workload, HasUsers):
        return
    think_s, window_s, lowest = workload.think_s(), study.measure.window, min(study.levels)
    if lowest * window_s < think_s:
        raise StudyError(
            f"workload.think_time is {show(think_s, 's')}: at the level {lowest:g} less than one request is to be "
            f"expected in a window of {show(window_s, 's')}.",
            remedy="Give a longer measure.window, more users at the lowest level, or a shorter think time.",
        )


def _check_cages(study: Study, *, target_here: bool) -> None:
    kind, sharded = study.target.kind, study.target.shards is not None
    tables = [study.around(kind).target for kind in kinds_of(study)]
    pieces = [table for table in tables if table.shards is not None]
    parts = [name for table in pieces for name in targets.components(table.kind, table.shards, table.sql_nodes)]
    known = {"driver", *("shard" if name.startswith("shard") else name for name in parts)}
    if unknown := sorted(study.cage.components.keys() - known):
        raise StudyError(
            f"cage.{unknown[0]}: {' and '.join(kinds_of(study))} has no component {unknown[0]!r}",
            remedy=f"There may be {', '.join(f'[cage.{name}]' for name in sorted(known))}."
            if parts
            else "Its cage is [cage] itself, the load driver's is [cage.driver].",
        )
    if sharded and is_limited(study.cage):
        raise StudyError(
            f"cage: a {kind} in several pieces has no cage of its own",
            remedy="Put these limits into [cage.shard]; each shard has them.",
        )
    check_nice(study, "cage", study.cage.nice)
    driver = study.cage.driver
    if targets.kind_named(kind).embedded and (driver.group_limits() or driver.process_limits()):
        raise StudyError(
            f"cage.driver: {kind} runs inside the driver's processes, which have the cage of the target",
            remedy="Put these limits into [cage].",
        )
    cages = (study.target_cage, *study.cage.components.values()) if target_here else ()
    for cage in cages:
        if cage.cpus is not None:
            available_cpus(cage.cpus)
    wanted = {LIMITS[name] for cage in cages for name in cage.group_limits()}
    there = groups.available() if wanted else {}
    if missing := sorted(name for name in wanted if there[name] is None):
        raise groups.refusal(missing, [])


def _check_address(study: Study) -> None:
    if targets.kind_named(study.target.kind).by_address is None:
        others = (targets.KINDS.get(alternative.target.kind or "") for alternative in study.alternative)
        if by_address := [row.kind for row in others if row is not None and row.by_address is not None]:
            raise StudyError(
                f"an alternative of kind {by_address[0]}: a running server cannot be caged for a side-by-side "
                "comparison",
                remedy="Give it a study of its own, and compare the two runs.",
            )
        return
    if study.alternative:
        raise StudyError(
            "a running server cannot be changed, so it has no alternative",
            remedy="Give each a study of its own, and compare the two runs.",
        )
    check_consent(study)
    if is_limited(study.cage):
        raise StudyError("cage: a running server cannot be caged", remedy="Omit these limits; [cage.driver] may stay.")


def check_consent(study: Study) -> None:
    """StudyError for a server on another machine without its owner's consent. Only its name is looked up."""
    target, row, loaded = study.target, targets.kind_named(study.target.kind), ""
    if row.by_address is not None:
        loaded = row.by_address.host_of(target.settings)
    elif target.attach is not None and row.attachable is not None:
        loaded = row.attachable.host_of(target.attach, Path(target.option_file) if target.option_file else None)
    asked = [table.address.host for table in target.metrics if table.address is not None]
    for host, what in ((loaded, "the load"), *((host, "that its counters are read") for host in asked)):
        agreed = target.authorised and target.owner.strip()
        if host and not is_here(host, afresh=True) and not agreed:
            raise StudyError(
                f"{host} is not this machine, and the study does not say that its owner has authorised {what}",
                remedy='Ask, then set target.authorised = true and target.owner = "who has said so".',
            )


def check_stages(study: Study) -> None:
    if any(table.stages is not None for table in study.target.metrics):
        need_stages("stages in [[target.metrics]]")


def need_stages(what: str) -> None:
    """MissingTool where no family reads statistics of stages."""
    if "pipeline" not in FAMILIES:
        raise not_installed(FAMILIES_GROUP, "pipeline", what)


def _check_attached(study: Study) -> None:
    target = study.target
    if target.is_running_service:
        check_running_service(study)
        return
    if target.attach is None:
        of_others = {"option_file": target.option_file, "config": target.config, "restart": target.restart}
        if given := [name for name, value in of_others.items() if value]:
            raise StudyError(f"target.{given[0]} is for a running server", remedy="Add target.attach.")
        return
    row = targets.kind_named(target.kind)
    if row.attachable is None:
        raise StudyError(
            f"target.attach: a running {target.kind} cannot be attached to",
            remedy=f"Of these it can: {', '.join(targets.attachable_kinds())}.",
        )
    if target.kind not in databases.REMOVABLE:
        raise StudyError(
            f"target.attach: Loadframe reads a running {target.kind}, but cannot load it: it does not know how to "
            "remove what a killed run leaves there",
            remedy="`loadframe limits --attach` reads it. To load one, leave out target.attach.",
        )
    if target.shards is not None or target.sql_nodes is not None or len(kinds_of(study)) > 1:
        raise StudyError(
            "target.attach: a running server is measured alone",
            remedy="Leave out target.shards, target.sql_nodes and alternatives of another kind.",
        )
    if (refusal := row.attachable.read_only) and (changes := _named_changes(study)):
        raise StudyError(f"{refusal}: {changes[0]}", remedy=READ_ONLY_REMEDY)
    check_groups(study, "server", "Of it")
    named = process_settings(study)
    check_allowed(study, named, "server", "If its owner agrees: ")
    if named and target.attach and not target.attach.startswith("/"):
        raise StudyError(
            f"{named[0]} of the server at {target.attach}: over the network its process cannot be identified for "
            "certain",
            remedy="Name its socket in target.attach, or leave out what the study says of its processes.",
        )
    check_consent(study)
    _check_restart(study)
    others = [alternative.target.settings for alternative in study.alternative] + [
        change.target.settings for change in study.change
    ]
    row = targets.of_study(study)
    for settings in (target.settings, *others):
        restart = [name for name in row.catalogue.check(settings) if not is_dynamic(row, name)]
        if restart and target.config is None:
            raise StudyError(
                f"target.settings.{restart[0]}: {target.kind} must be restarted to change it, and this one is not "
                "Loadframe's own",
                remedy="Change it by hand, give the study a private server (leave out target.attach), or, where its "
                "owner does not mind, target.config and target.restart.",
            )


def _named_changes(study: Study) -> list[str]:
    given = {"target.config": study.target.config, "target.restart": study.target.restart}
    states = (*study.alternative, *study.change)
    settings = [study.target.settings, *(state.target.settings for state in states)]
    named = dict.fromkeys(name for table in settings for name in table)
    return [key for key, value in given.items() if value] + [
        *(f"target.settings.{name}" for name in named),
        *process_settings(study),
    ]


def _check_restart(study: Study) -> None:
    target = study.target
    if (target.config is None) != (not target.restart):
        raise StudyError(
            "target.config and target.restart belong together",
            remedy='For example config = "/etc/mysql/mariadb.conf.d/zz-loadframe.cnf" and '
            'restart = ["systemctl", "restart", "mariadb"]; or neither.',
        )
    if target.config is None:
        return
    if not Path(target.config).is_absolute():
        raise StudyError(f"target.config = {target.config!r} is not an absolute path", remedy="Begin it with /.")
    if shutil.which(target.restart[0]) is None:
        raise MissingTool(f"target.restart: there is no program {target.restart[0]}", remedy="Correct its name.")
    if named := process_settings(study):
        raise ends_with(named)


def unseen(study: Study, processes: bool) -> tuple[str, ...]:
    """What the study cannot observe, in sentences. processes: whether the target's were recorded."""
    row = targets.KINDS.get(study.target.kind)  # None for a kind of an older run that is not available now
    target = (row.by_address.unseen,) if row is not None and row.by_address is not None and not processes else ()
    notes = targets.of_study(study).notes if row is not None else ()
    try:
        workload = workload_of(study)
    except UserError:  # a run may need files and variables that are not here
        return (*target, *notes)
    unchecked = workload.unchecked(study.target.kind) if isinstance(workload, SendsRequests) else ""
    return (*target, *notes, *((unchecked,) if unchecked else ()))


def _check_programs(study: Study, *, target_here: bool, driver_here: bool) -> None:
    kinds = kinds_of(study) if target_here and not study.target.is_running else ()
    needed = [requirement for kind in kinds for requirement in targets.needs(targets.of_study(study, kind))]
    needed += workloads.check(study.workload.kind) if driver_here else []
    missing = [requirement for requirement in needed if requirement.present is None]
    if missing:
        named = list(dict.fromkeys(requirement.what for requirement in missing))
        raise MissingTool(
            f"this study needs {', '.join(named)}, which {'is' if len(named) == 1 else 'are'} not installed",
            remedy="Install: " + "; and ".join(dict.fromkeys(requirement.how_to_get_it for requirement in missing)),
        )
