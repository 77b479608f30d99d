"""What sysstat recorded of a machine, as `sadf -j` (JSON) and `sadf -d` (text with semicolons) write it.

Names are those of sar without % and /s, with the device as a label: idle{cpu="all"}, util{dev="sda"}, ldavg-1,
rxpck{iface="eth0"}. busy{cpu=...} is 100 - idle. By themselves the CPUs and the disks that were busy are resources.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadframe.errors import SampleError
from loadframe.formats.observed_csv import MILLISECONDS_FROM, NO_ZONE, moment, zoneless
from loadframe.formats.observed_series import Series, Table, check_size, read_json
from loadframe.formats.plain_numbers import finite
from loadframe.formats.said import words
from loadframe.model import ObservedMapping
from loadframe.progress import counted

BY_SADF = "Write it with `sadf -j -- -u -d -q -n DEV` or `sadf -d -- -u`."
FEWER_ACTIVITIES = "Choose fewer activities, or a shorter range with -s and -e."
HEAD = "# hostname;interval;timestamp"
OF_SAR = re.compile(r"Linux \S+ \(.*\)\s.*\(\d+ CPU\)\s*$")
"""The first line of what sar itself prints."""
LABELS: Mapping[str, str] = {
    "cpu": "cpu", "dev": "dev", "disk-device": "dev", "iface": "iface", "intr": "intr", "filesystem": "filesystem",
    "mountpoint": "filesystem", "tty": "tty", "line": "tty", "bus": "bus", "number": "number",
}  # fmt: skip
"""Columns, or keys, that name a device and measure nothing: the label that each becomes."""

BUSY_PERCENT = 5.0
"""A disk that was never busier is no resource worth a line."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,60}")


@dataclass(slots=True)
class _Sysstat:
    """Values by series and time, the restarts of the machine, and whether times are of an unknown zone."""

    name: str
    values: dict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]] = field(default_factory=dict)
    cells: int = 0
    restarts: int = 0
    zoneless: bool = False

    def add(self, time_s: float, column: str, labels: Mapping[str, str], value: float) -> None:
        key = (column, tuple(sorted(labels.items())))
        self.values.setdefault(key, {})[time_s] = value
        self.cells += 1
        check_size(self.name, len(self.values), self.cells, FEWER_ACTIVITIES)


def is_json(text: str) -> bool:
    """Whether JSON text is sysstat's."""
    return re.match(r'\s*\{\s*"sysstat"\s*:', text.removeprefix("\ufeff")) is not None


def is_text(text: str) -> bool:
    """Whether text is what `sadf -d` writes."""
    return text.removeprefix("\ufeff").lstrip().startswith(HEAD)


def check_not_of_sar(text: str, name: str) -> None:
    """SampleError for the tables that sar prints: their times have no day, and their columns depend on the locale."""
    if OF_SAR.match(text.removeprefix("\ufeff").lstrip().partition("\n")[0]):
        raise SampleError(
            f"{name} is what sar prints, which is for people to read",
            remedy="Write the same with sadf, for example `sadf -d /var/log/sysstat/sa24 -- -u > sa24.txt`, or "
            "`sadf -j /var/log/sysstat/sa24 -- -u -d -q -n DEV > sa24.json` for more.",
        )


def parse_sysstat(text: str, name: str) -> Table:
    """The series in either form. SampleError names the line, or the place, that is none of it."""
    found = _Sysstat(name)
    if is_json(text):
        _json(text, found)
    else:
        _lines(text, found)
    if not found.values:
        raise SampleError(f"{name} has no measurements of sysstat", remedy=BY_SADF)
    series = tuple(Series.of(column, dict(labels), values) for (column, labels), values in found.values.items())
    busy = tuple(
        Series("busy", one.labels, one.times_s, tuple(100 - value for value in one.values))
        for one in series
        if one.name == "idle" and "cpu" in one.labels
    )
    told = f"The machine was restarted {found.restarts:,} time{'s' if found.restarts > 1 else ''}."
    notes = (*((NO_ZONE,) if found.zoneless else ()), *((told,) if found.restarts else ()))
    return Table(name, (*series, *busy), _usual(series, busy), notes=notes)


def _usual(series: tuple[Series, ...], busy: tuple[Series, ...]) -> ObservedMapping:
    """The CPUs of the whole machine, and each disk that was busy."""
    all_cpus = any(one.labels["cpu"] == "all" for one in busy)
    use = {"cpu": 'busy{cpu="all"} / 100'} if all_cpus else {}
    for one in series:
        disk = one.labels.get("dev", "")
        most = max((value for value in one.values if math.isfinite(value)), default=0.0)
        if one.name == "util" and _PLAIN.fullmatch(disk) and most >= BUSY_PERCENT:
            use[f"disk.{disk}"] = f'util{{dev="{disk}"}} / 100'
    return ObservedMapping(use=use)


def _column(name: str) -> str:
    """%user, rxpck/s and util-percent without what says their unit."""
    return name.strip().lstrip("%").removesuffix("/s").removesuffix("-percent")


# --- sadf -d ----------------------------------------------------------------------------------------------------------


def _lines(text: str, found: _Sysstat) -> None:
    columns: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(";")]
        where = f"{found.name}, line {number}"
        if line.lstrip().startswith("#"):
            columns = [_column(cell.lstrip("# ")) for cell in cells]
            if columns[:3] != ["hostname", "interval", "timestamp"]:
                raise SampleError(f"{where} begins with {words(line, 60)!r}, not {HEAD!r}", remedy=BY_SADF)
            continue
        if len(cells) > 3 and cells[3].startswith(("LINUX-RESTART", "COM ")):
            found.restarts += cells[3].startswith("LINUX-RESTART")
            continue
        if columns and columns[-1].endswith("*"):  # as many cells as there are CPUs; their sum comes first
            cells = cells[: len(columns)]
        if len(cells) != len(columns):
            raise SampleError(
                f"{where} has {counted(len(cells), 'cell')} where its head names {counted(len(columns), 'column')}",
                remedy=BY_SADF,
            )
        _line(dict(zip(columns, cells, strict=True)), where, found)


def _line(cells: Mapping[str, str], where: str, found: _Sysstat) -> None:
    time_s = _time(cells["timestamp"], where)
    found.zoneless |= zoneless(cells["timestamp"])
    labels = {LABELS[key.lower()]: _device(value) for key, value in cells.items() if key.lower() in LABELS}
    for column, text in cells.items():
        if column in ("hostname", "interval", "timestamp") or column.lower() in LABELS:
            continue
        value = finite(text.replace(",", "."))  # sysstat writes a decimal comma where the locale has one
        if value is not None:
            found.add(time_s, column, labels, value)


def _device(text: str) -> str:
    return "all" if text == "-1" else text[:200]


def _time(text: str, where: str) -> float:
    value = finite(text)
    if value is None:
        value = moment(text.removesuffix(" UTC"))
    if value is None or abs(value) >= MILLISECONDS_FROM:
        raise SampleError(f"{where}: {words(text, 60)!r} is no time", remedy=BY_SADF)
    return value


# --- sadf -j ----------------------------------------------------------------------------------------------------------


def _json(text: str, found: _Sysstat) -> None:
    document = read_json(text, found.name, BY_SADF)
    for host in _list(_object(document, "sysstat", found), "hosts", found):
        if not isinstance(host, dict):
            raise SampleError(f"{found.name} has a host that is no object", remedy=BY_SADF)
        restarts = host.get("restarts")
        found.restarts += len(restarts) if isinstance(restarts, list) else 0
        for number, moment_ in enumerate(_list(host, "statistics", found), 1):
            where = f"{found.name}, statistics {number}"
            if not isinstance(moment_, dict) or not isinstance(moment_.get("timestamp"), dict):
                if moment_ == {}:
                    continue
                raise SampleError(f"{where} has no timestamp", remedy=BY_SADF)
            stamp = moment_["timestamp"]
            found.zoneless |= stamp.get("utc") != 1
            time_s = _time(f"{stamp.get('date', '')} {stamp.get('time', '')}".strip(), where)
            for key, value in moment_.items():
                if key != "timestamp":
                    for column, labels, number_ in _within(key, value, {}):
                        found.add(time_s, column, labels, number_)


def _within(key: str, value: Any, labels: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Every number below, with its column and the devices above it. parse_json has bounded the depth."""
    if isinstance(value, dict):
        named = {LABELS[one]: _device(str(each)) for one, each in value.items() if one in LABELS}
        for one, each in value.items():
            if one not in LABELS:
                yield from _within(one, each, {**labels, **named})
    elif isinstance(value, list):
        for each in value:
            yield from _within(key, each, labels)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _column(key), labels, float(value)


def _object(value: Any, key: str, found: _Sysstat) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        raise SampleError(f"{found.name} has no object `{key}`", remedy=BY_SADF)
    return inner


def _list(value: Mapping[str, Any], key: str, found: _Sysstat) -> list[Any]:
    inner = value.get(key)
    if not isinstance(inner, list):
        raise SampleError(f"{found.name} has no list `{key}`", remedy=BY_SADF)
    return inner
