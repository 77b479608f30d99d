"""What a search for settings may vary: what the study names, or the table of the target's kind."""

import math
from collections.abc import Mapping, Sequence

from loadframe.bench.attached import is_dynamic
from loadframe.errors import StudyError
from loadframe.kinds import registry as targets
from loadframe.kinds.catalogue import Tunable
from loadframe.kinds.kind import KindOfTarget
from loadframe.model import CLIENT_AXES, SettingValue
from loadframe.study import Study
from loadframe.study.declaration import TuneRange
from loadframe_tune.search import Dimension, Space, dimension, spread

MEMORY_SHARE = 0.8
"""Share of the cage's or the machine's memory that the settings may take together."""
LARGEST_SHARE = 0.5
"""Share of it that a single setting may take: as for a remedy that enlarges one."""
USUAL_CONNECTIONS = 151


def check(study: Study) -> None:
    """StudyError where there is nothing to vary, or where the study asks for what it does not allow."""
    known = targets.of_study(study)
    if not known.tunables or (study.target.shards is not None and not known.one_system):
        names = ", ".join(sorted(name for name, row in targets.KINDS.items() if row.tunables))
        raise StudyError(
            f"Loadframe knows no settings to tune for a {study.target.form}",
            remedy=f"`tune` works on one server of kind {names}.",
        )
    for name in study.tune.settings:
        _row(study, name)


def vary(
    study: Study, effective: Mapping[str, SettingValue], memory_bytes: float | None, first: Sequence[str]
) -> tuple[Space, dict[str, str]]:
    """The space, from the study or the target's table, `first` first; and which settings are left out, and why.
    effective: what the target uses at the start. memory_bytes: of its cage or machine; None where unknown: memory is
    then varied only over values that the study gives. StudyError where nothing is left to vary."""
    known = targets.of_study(study)
    by_load = study.load.axis in CLIENT_AXES
    connections = study.levels[-1] if by_load else float(effective.get("max_connections", USUAL_CONNECTIONS))
    named = list(study.tune.settings) or [row.name for row in known.tunables]
    names = sorted(named, key=lambda name: first.index(name) if name in first else len(first))
    dimensions: list[Dimension] = []
    left_out: dict[str, str] = {}
    for name in names:
        row = _row(study, name)
        if row.name not in effective:
            left_out[name] = "the target does not report the value in use"
        elif ended := [other for other in row.without_effect if other in study.target.settings]:
            left_out[name] = f"it has no effect where {ended[0]} is given"
        elif study.target.is_running and study.target.config is None and not is_dynamic(known, row.name):
            left_out[name] = "it needs a restart, and the study does not say how (target.config, target.restart)"
        elif memory_bytes is None and row.unit_bytes and not row.values:
            left_out[name] = "the memory of its machine is not known here: give its values in tune.settings"
        else:
            values = [*(row.values or _spread(known, row, memory_bytes or 0.0))]
            values += row.relaxed if study.remedies.durability == "relax" else ()
            start = effective[row.name]
            bytes_each = row.unit_bytes * (connections if row.per == "connection" else 1)
            try:
                ordered = not isinstance(start, str)
                dimensions.append(dimension(row.name, values, start, ordered=ordered, bytes_each=bytes_each))
            except ValueError:
                left_out[name] = "every other value gives up durability" if row.relaxed else "it has only one value"
    if not dimensions:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise StudyError(f"no setting is left that could be varied: {reasons}", remedy="Name others in tune.settings.")
    most = math.inf if memory_bytes is None else MEMORY_SHARE * memory_bytes
    return Space(tuple(dimensions), most), left_out


def _row(study: Study, name: str) -> Tunable:
    known, asked = targets.of_study(study), study.tune.settings
    spec = known.catalogue.spelt(name)
    canonical = name if spec is None else spec.name
    row = next((tunable for tunable in known.tunables if tunable.name == canonical), None)
    given = asked[name] if isinstance(asked, dict) else []
    if spec is None:
        raise StudyError(
            f"tune.settings: {known.kind} has no setting {name!r} that Loadframe knows well enough to vary",
            remedy=f"Known: {', '.join(tunable.name for tunable in known.tunables)}.",
        )
    if row is not None and not given:
        return row
    if not given:
        raise StudyError(
            f"tune.settings.{name}: its safe range is not known",
            remedy=f"Give its values, for example {name} = [{spec.default!r}, ...], or {{ from = .., to = .. }}.",
        )
    ends = [given.low, given.high] if isinstance(given, TuneRange) else given
    checked = [known.check_settings({canonical: value})[canonical] for value in ends]
    losing = [value for value in checked if may_lose(known, canonical, value)]
    if losing and study.remedies.durability == "keep":
        raise StudyError(
            f"tune.settings.{name}: {losing[0]!r} may give up durability ({spec.gives_up})",
            remedy='Omit it, or set remedies.durability = "relax".',
        )
    values = tuple(checked)
    if isinstance(given, TuneRange):
        low, high = values
        if isinstance(low, str) or isinstance(high, str) or not low < high:
            fact = f"tune.settings.{name}: {given.low!r} to {given.high!r} is not a range"
            raise StudyError(fact, remedy="Give numbers that rise.")
        values = spread(low, high, whole=spec.kind != "number")
    return Tunable(canonical, values, unit_bytes=row.unit_bytes if row else 0.0, per=row.per if row else "server")


def may_lose(row: KindOfTarget, name: str, value: SettingValue) -> bool:
    spec = row.setting(name)
    assert spec is not None, "only settings of the catalogue are varied"
    return spec.weakens(value)


def _spread(known: KindOfTarget, row: Tunable, memory_bytes: float) -> tuple[SettingValue, ...]:
    spec, high = known.setting(row.name), LARGEST_SHARE * memory_bytes if row.high is None else row.high
    return spread(row.low, max(high, row.low), whole=spec is None or spec.kind != "number")
