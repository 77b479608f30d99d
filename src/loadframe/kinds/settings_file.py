"""Settings in the form of each target's own file, to copy."""

from collections.abc import Mapping, Sequence

from loadframe.changes import host
from loadframe.errors import StudyError
from loadframe.kinds import registry
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.model import Change, ChangeRecord, SettingValue


def written(row: KindOfTarget, settings: Mapping[str, SettingValue]) -> tuple[str, str]:
    """The name and text of the target's own settings file. StudyError without one, and for unprintable words."""
    form = row.file
    if form is None:
        known = ", ".join(name for name, kind in registry.KINDS.items() if kind.file is not None)
        raise StudyError(f"no settings of {row.kind} are searched", remedy=f"Those of {known} are.")
    for word in (word for setting_ in settings.items() for word in setting_ if isinstance(word, str)):
        if not word.isprintable():
            raise StudyError(
                f"{word!a} does not belong in a line of {form.file}", remedy="Give it without such characters."
            )
    return form.file, form.head + "".join(f"{line}\n" for line in _lines(row, form, form.line, settings))


def _lines(row: KindOfTarget, form: SettingsFile, line: str, settings: Mapping[str, SettingValue]) -> list[str]:
    return [line.format(name=name, value=_word(row, form, name, value)) for name, value in settings.items()]


OTHER_LAYERS = {
    "RLIMIT_NOFILE": "LimitNOFILE={1}   # of systemd; in a shell: ulimit -n {1}",
    "RLIMIT_NPROC": "LimitNPROC={1}   # of systemd; in a shell: ulimit -u {1}",
    "memory.max": "MemoryMax={1}   # of systemd",
    "pids.max": "TasksMax={1}   # of systemd",
    "process": "# of the process: {0} = {1}",
}
"""How changes outside of the server's own file are typed in, {0} the name, {1} the value: systemd.exec(5)."""


def to_copy(row: KindOfTarget, changes: Sequence[Change] | Sequence[ChangeRecord]) -> tuple[str, ...]:
    """Changes as lines to type in: those of the target's own file, of its process and of the machine, then which take
    effect only at a restart. StudyError as `written`."""
    given = {
        change.setting: change.after
        for change in changes
        if change.layer in ("server", "application") and change.after is not None
    }
    own = {name: value for name, value in given.items() if row.setting(name) is not None}
    form = row.file
    if own and form is not None:
        lines = written(row, own)[1].splitlines()
        lines = _lines(row, form, form.statement, own) if form.statement else lines
    else:
        lines = [f"{name} = {value}" for name, value in own.items()]
    for change in changes:
        if change.layer == "process":
            lines.append(OTHER_LAYERS.get(change.setting, OTHER_LAYERS["process"]).format(change.setting, change.after))
        elif change.layer == "host" and change.after is not None:
            lines.append(host.command(change.setting, change.after))
    comment = "--" if form is not None and (form.statement or form.file.endswith(".sql")) else "#"
    options = [f"{name} = {value}" for name, value in given.items() if name not in own]
    lines += [f"{comment} of the workload: in the study, under [workload.options]", *options] if options else []
    restarts = [name for name in own if row.catalogue.needs_restart(name)]
    return (*lines, *([f"{comment} takes effect at a restart: {', '.join(restarts)}"] if restarts else []))


def _word(row: KindOfTarget, form: SettingsFile, name: str, value: SettingValue) -> str:
    if isinstance(value, bool):
        return form.words[value]
    if isinstance(value, str):
        return f"{form.quotes}{value}{form.quotes}"
    spec = row.setting(name)
    sized = spec is not None and spec.kind == "bytes" and value >= 0
    return f"{form.quotes}{value}{form.size}{form.quotes}" if sized and form.size else str(value)
