"""Whether a study of a running service of the reader's own fits together: what may be done to it, and what is not."""

from __future__ import annotations

from loadframe.bench.attached import is_dynamic, process_settings
from loadframe.connections.address import is_here
from loadframe.errors import MissingTool, StudyError
from loadframe.host.environment import located
from loadframe.kinds import registry as targets
from loadframe.kinds.service.finding import where
from loadframe.study import Study

OWN = "set target.owned = true if it is yours"


def check_running_service(study: Study) -> None:
    """StudyError for what is not done to a running service, or only to one that is the reader's own."""
    target = study.target
    if given := [name for name in ("attach", "option_file", "config") if getattr(target, name)]:
        raise StudyError(f"target.{given[0]} is for a running database", remedy="Omit it.")
    if target.listen is not None and not is_here(host := where(str(target.listen))[0], afresh=True):
        raise StudyError(
            f"target.listen: {host} is not this machine, so no process of it is seen",
            remedy='Load it by its address: kind = "url".',
        )
    if target.shards is not None or any(each.target.kind not in (None, target.kind) for each in study.alternative):
        raise StudyError(
            "a running service is measured alone", remedy="Leave out target.shards and alternatives of another kind."
        )
    if grouped := list(study.cage.group_limits()):
        raise StudyError(
            f"cage: a running service cannot be moved into control groups ({grouped[0]})",
            remedy="Of one that is yours there may be cage.cpus, cage.nice and cage.open_files; [cage.driver] may have "
            "all.",
        )
    if target.restart and located(target.restart[0]) is None:
        raise MissingTool(f"target.restart: there is no program {target.restart[0]}", remedy="Correct its name.")
    _check_processes(study)
    row, tables = targets.of_study(study), [each.target.settings for each in (*study.alternative, *study.change)]
    stated = row.check_settings(target.settings)
    for table in tables:
        for name, value in row.check_settings(table).items():
            if stated.get(name) != value:
                _check_change(study, name)


def _check_processes(study: Study) -> None:
    named = process_settings(study)
    if named and "process" not in study.remedies.allow:
        raise StudyError(
            f"the study changes {named[0]} of a running service, and remedies.allow does not name that",
            remedy='remedies.allow = ["target", "process"]. It is put back at the end.',
        )
    if named and study.target.restart:
        raise StudyError(
            f"target.restart: the study changes {named[0]} too, which would end with the processes",
            remedy="Give each a study of its own.",
        )
    if named and not study.target.owned:
        raise StudyError(f"the study changes {named[0]} of a running service", remedy=f"Omit it, or {OWN}.")


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
