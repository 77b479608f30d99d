"""What a remedy is made from, and the arithmetic of sizing one."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadframe.model import Change, Knob, Layer, Price, Remedy, SettingValue, TargetState

OTHER_FILES = 100
"""Files in addition to connections and cached tables. mysqld's arithmetic takes 10 for itself; MariaDB 10.11 took 31
(12,000 tables asked for under 20,000 files and 151 connections: 9,909 given), and logs and temporary tables come on
top."""
RESERVE = 1.2
"""A raised ceiling covers the use expected at the highest requested level, and a fifth more."""
ENLARGE = 8
"""The need only shows once there is enough: a factor with a visible effect, and small against a machine."""
MEMORY_SHARE = 0.5
"""At most half of the memory: connections, caches and the rest of the machine need the other half."""
DISK_SHARE = 0.5
"""At most half of the free disk space: logs, temporary files and other programs need the other half."""
OPEN_FILES, NOFILE = "process.open_files", "RLIMIT_NOFILE"


@dataclass(frozen=True, slots=True)
class Situation:
    """effective: settings and process limits in use. demands: limit id -> the use expected at the highest level if
    nothing capped it (None: not estimable). ceilings: limit id -> effective ceiling. most_open_files: what this machine
    allows a process. free_disk_bytes: of the file system with the target's data; infinite where unknown. knobs: the
    settings that the study declares."""

    target_kind: str
    state: TargetState
    effective: Mapping[str, SettingValue]
    demands: Mapping[str, float | None]
    ceilings: Mapping[str, float]
    most_open_files: int = 2**31 - 1
    free_disk_bytes: float = math.inf
    knobs: tuple[Knob, ...] = ()


Builder = Callable[[Situation], Remedy | None]
Builders = Mapping[str, tuple[Builder, ...]]
"""By the id of the finding that they address."""


def enlarged(
    setting: str,
    cause: str,
    title: str,
    why: str,
    note: str,
    *kinds: str,
    documentation: str,
    factor: int = ENLARGE,
    on_disk: bool = False,
    pieces: Callable[[Situation], int] = lambda _: 1,
) -> Builder:
    """Several times as much of a setting in bytes, within half of the memory of the machine or its cage, or (on_disk)
    of the free disk space. kinds: of the targets that have it. documentation: its page on the setting is the source.
    pieces: how many of that size there are; note may have a place for the number."""

    def build(situation: Situation) -> Remedy | None:
        size, many = whole(situation.effective, setting, 0), pieces(situation)
        if situation.target_kind not in kinds or not size:
            return None
        most = _room_on_disk(situation, size) if on_disk else _room_in_memory(situation) / many
        after = int(min(factor * size, most)) >> 20 << 20
        if after <= size:
            return None
        return Remedy(
            id=f"{cause}.raise",
            title=title.format(f"{after >> 20:,} MiB"),
            addresses=(cause,),
            changes=(server_change(situation, setting, after, why),),
            price=Price(note=note.format(many)),
            source=f"{documentation}, {setting}",
        )

    return build


def _room_in_memory(situation: Situation) -> float:
    return MEMORY_SHARE * min(situation.ceilings.get(name, math.inf) for name in ("system.memory", "cage.memory"))


def _room_on_disk(situation: Situation, size: int) -> float:
    """No more than `size` where that could not double: a log that fills the disk stops the server."""
    if math.isinf(situation.free_disk_bytes):
        return _room_in_memory(situation)
    room = size + DISK_SHARE * situation.free_disk_bytes
    return room if room >= 2 * size else size


def raised_alone(
    limit: str,
    title: str,
    why: str,
    note: str,
    source: str,
    chain: Callable[[Situation, int], tuple[Change, ...]] = lambda *_: (),
) -> Builder:
    """A limit that one setting of its own name raises. chain: the changes that this size of it needs first."""
    setting = limit.partition(".")[2]

    def build(situation: Situation) -> Remedy | None:
        size = raised(situation, limit, setting)
        if size is None:
            return None
        return Remedy(
            id=f"{limit}.raise",
            title=title.format(f"{size:,}"),
            addresses=(limit,),
            changes=(*chain(situation, size), server_change(situation, setting, size, why)),
            price=Price(note=note),
            source=source,
        )

    return build


def more_open_files(situation: Situation, chain: Callable[[int], tuple[Change, ...]], *also: str) -> Remedy | None:
    """More open files, up to the machine's limit. chain: the changes for them. also: further causes."""
    files = raised(situation, OPEN_FILES, NOFILE)
    if files is None or (files := min(files, situation.most_open_files)) <= situation.ceilings[OPEN_FILES]:
        return None  # the machine allows no more
    return Remedy(
        id=f"{OPEN_FILES}.raise",
        title=f"allow the target {files:,} open files",
        addresses=(OPEN_FILES, *also),
        changes=chain(files),
        price=Price(note="kernel memory for each open file"),
        source=f"getrlimit(2), {NOFILE}",
    )


def raised(situation: Situation, limit: str, setting: str) -> int | None:
    """The ceiling to ask for: the need of the highest level and a fifth more (four times today's where that is
    unknown), at least twice today's; None where the limit was not read."""
    ceiling = situation.ceilings.get(limit)
    if ceiling is None or setting not in situation.effective:
        return None
    demand = situation.demands.get(limit)
    wanted = RESERVE * demand if demand is not None else 4 * ceiling
    return round_up(max(wanted, 2 * ceiling))


def round_up(value: float) -> int:
    """To two significant digits, because people read and copy it."""
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)


def link(situation: Situation, layer: Layer, setting: str, least: int, why: str) -> Change:
    """A link of a chain: raised to `least` where it is below."""
    now = situation.effective.get(setting)
    have = whole(situation.effective, setting, 0)
    if have >= least and now is not None:
        return Change(layer, setting, now, now, needed=False, why=f"already enough: {least:,} are needed")
    return Change(layer, setting, now, least, needed=True, why=why)


def server_change(situation: Situation, setting: str, after: SettingValue, why: str) -> Change:
    return Change("server", setting, situation.effective.get(setting), after, needed=True, why=why)


def whole(effective: Mapping[str, SettingValue], setting: str, default: int) -> int:
    try:
        return int(float(effective.get(setting, default)))
    except ValueError:
        return default


def text(effective: Mapping[str, SettingValue], setting: str) -> str:
    return str(effective.get(setting, "")).strip().lower()
