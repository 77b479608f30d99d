"""The plan of a watch, handed from the command to the lasting process, and its alarms; all JSON-ready. Also any record
as JSON and from it, checked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin

from loadframe.model.curve import LoadInterval

LOADLESS = "the load at which a limit is reached, when, and where the response bends are not known"
"""Message where the load metric was not read."""


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """What to watch; times in seconds, no secrets. find: how the service's processes are found, also after a restart:
    pid, started, listen (number, port), groups (folders of its control group), command line; and whose it is: uids
    (real, effective, saved) and program. port_users: by each port of this machine that is asked, who listened there
    when the watch began. server: a database's address, as it gave it itself. sources: addresses and commands that
    expose counters. unit: an HTTP request or a command. limits: that the study declares. keep_days, keep_bytes: of day
    files, besides the day in progress."""

    subject: str
    folder: str
    interval_s: float = 10.0
    every_s: float = 300.0
    for_s: float | None = None
    load: str = ""
    find: Mapping[str, Any] = field(default_factory=dict)
    port_users: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    server: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()
    unit: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[Mapping[str, Any], ...] = ()
    kinds: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    webhook: str = ""
    webhook_owner: str = ""
    command: tuple[str, ...] = ()
    exit_on_alarm: bool = False
    as_json: bool = False
    keep_days: int = 400
    keep_bytes: int = 1 << 30

    def as_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_record(cls, data: Mapping[str, Any]) -> "WatchPlan":
        """TypeError for an invalid plan."""
        lists = ("sources", "limits", "kinds", "requests", "command")
        fields: dict[str, Any] = {name: tuple(value) if name in lists else value for name, value in data.items()}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class WatchAlarm:
    """alarm: its kind (docs/watching.md); about: the limit, metric or series; advice: what to try. at_load: {load, low,
    high}; ends_s: {value, low, high}, wall clock."""

    alarm: str
    about: str
    title: str
    evidence: tuple[Mapping[str, Any], ...] = ()
    advice: tuple[str, ...] = ()
    at_load: Mapping[str, float] | None = None
    ends_s: Mapping[str, float | None] | None = None

    @property
    def key(self) -> str:
        """One event has one alarm."""
        return f"{self.alarm} {self.about}"

    def as_record(self) -> dict[str, Any]:
        """As in a day file."""
        data = asdict(self)
        data["try"] = data.pop("advice")
        return data


@dataclass(frozen=True, slots=True)
class ImportedWatch:
    """name: of the file; load: the metric that is the load; from_s, to_s: wall clock of the first and the last row.
    model: as a line `model` of a day file, at the last row; titles: of its limits, by id. has_response: a response was
    imported that can show a bend; bend: of it. highest_use: shares, by limit; highest_load: None where no row has a
    load."""

    folder: str
    name: str
    load: str
    rows: int
    from_s: float
    to_s: float
    model: Mapping[str, Any]
    has_response: bool
    bend: LoadInterval | None
    highest_load: float | None
    highest_use: Mapping[str, float]
    titles: Mapping[str, str]
    notes: tuple[str, ...] = ()


MOST = 1e31
"""Larger numbers were never measured; their squares are finite."""


def as_json(record: Any) -> dict[str, Any]:
    """For `of_json`."""
    values = {part.name: getattr(record, part.name) for part in fields(record)}
    return {name: as_json(value) if is_dataclass(value) else value for name, value in values.items()}


def of_json(kind: Any, value: Any) -> Any:
    """kind: number, text, list, tuple, dict, optional, dataclass or TypedDict. ValueError for another form, numbers
    beyond MOST, negative whole numbers, and what a dataclass itself refuses."""
    of, parts = get_origin(kind), get_args(kind)
    if kind is float or kind is int:
        least = -MOST if kind is float else 0
        if isinstance(value, bool) or not isinstance(value, kind | int) or not least <= value <= MOST:
            raise ValueError(f"{_shown(value)} is no number ({kind.__name__}) from {least:g} to {MOST:g}")
        return kind(value)
    if kind is str:
        if not isinstance(value, str):
            raise ValueError(f"{_shown(value)} is no text")
        return value
    if of is UnionType:
        return None if value is None else of_json(parts[0], value)
    if of in (list, tuple):
        if not isinstance(value, list) or (of is tuple and len(value) != len(parts)):
            raise ValueError(f"{_shown(value)} is no list of the right length")
        return list(map(of_json, parts * len(value), value)) if of is list else tuple(map(of_json, parts, value))
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is no table")
    if of is dict:
        return value if parts[1] is Any else {name: of_json(parts[1], part) for name, part in value.items()}
    types = kind.__annotations__
    if value.keys() != types.keys():
        raise ValueError(f"it has other fields than {', '.join(types)}")
    return kind(**{name: of_json(of_field, value[name]) for name, of_field in types.items()})


def _shown(value: Any) -> str:
    return f"{str(value)[:40]!r}"
