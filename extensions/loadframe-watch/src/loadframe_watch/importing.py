"""Begin a watch from what other monitoring has recorded."""

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.errors import RunError, SampleError
from loadframe.host import identity
from loadframe.version import __version__
from loadframe_watch.child import fitted
from loadframe_watch.days import SCHEMA, observed
from loadframe_watch.journal import Clocks, Journal
from loadframe_watch.leaks import grows
from loadframe_watch.ledger import Ledger
from loadframe_watch.model import Model
from loadframe_watch.observed import regimes
from loadframe_watch.observed.blocks import missing
from loadframe_watch.observed.by_the_hour import EITHER, apart, driver
from loadframe_watch.observed.reading import import_observed, named_series
from loadframe_watch.observed.records import Observed, ObservedMapping
from loadframe_watch.observed.report import absent, change, growing
from loadframe_watch.observed.report import apart as words_of
from loadframe_watch.records import ImportedWatch, WatchPlan
from loadframe_watch.saturation_of_rows import bend, ranges
from loadframe_watch.watcher import FORGET_S

FIRST_S = 315_532_800.0
"""1980: rows before it have no wall clock, such as those of a CSV file without times, which begin at 0."""
AHEAD_S = DAY_S = 86400.0
"""Tolerated time in the future: a file in the times of another time zone is ahead by less."""
ROLES = ("load", "throughput", "response")
WORDS = (
    (re.compile(r"--(load|throughput|response)\b(?: NAME)?"), r"--as \1=SERIES"),
    (re.compile(r"--use\b(?= \S+=)"), "--as"),
    (re.compile(r"--use\b"), "--as LIMIT=SERIES"),
)
"""In messages of the readers of `curve`, its options become those of a watch."""


class _Times(Clocks):
    """Of a row; imported rows have no boot time."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s

    def wall(self) -> float:
        return self.at_s

    def boot(self) -> float:
        return 0.0

    monotonic = boot


def mapping_of(terms: Sequence[str], counters: Sequence[str]) -> ObservedMapping:
    """terms: `NAME=SERIES`; NAME is load, throughput, response or a limit. UsageError."""
    series = named_series("--as", terms, "Write --as load=SERIES, --as response=SERIES, or --as LIMIT=SERIES.")
    load, throughput, response = (series.pop(name, None) for name in ROLES)
    return ObservedMapping(load=load, throughput=throughput, response=response, use=series, counters=tuple(counters))


def begin_from(files: Sequence[str], mapping: ObservedMapping, plan: WatchPlan) -> ImportedWatch:
    """Read the files (further ones joined by time), write the days, learn. plan: of the watch that will go on in its
    folder; "": the answer alone. RunError where the folder has days already; SampleError."""
    if not plan.folder:
        with tempfile.TemporaryDirectory(prefix="loadframe-import-") as name:
            return replace(begin_from(files, mapping, replace(plan, folder=name)), folder="")
    folder, titles = Path(plan.folder), Ledger(plan.limits, plan.kinds).titles
    rows = _read(files, mapping)
    _check_times(rows)
    model = Model(plan.load, titles)
    times = _Times(rows.time_s[0])
    journal = Journal(folder, times)
    try:
        if journal.days():
            raise RunError(
                f"{folder} already has days of a watch; older rows cannot be added before them",
                remedy="Import into a new folder (--folder), and continue the watch there.",
            )
        journal.write("head", _head(rows, plan))
        for at, at_s in enumerate(rows.time_s):
            times.at_s = at_s
            if journal.new_day():
                journal.write("head", _head(rows, plan))
            if not journal.write("sample", _line(rows, at)):
                raise RunError(f"{folder} does not take the rows", remedy="Free some space, remove it, import again.")
        model.fit = fitted(observed(folder, since_s=rows.time_s[-1] - FORGET_S))
        known = _learned(rows, model)
        journal.write("model", known)
        journal.write("end", {"reason": "imported"})
        journal.keep({"boot": "", "model": model.as_json()})
    finally:
        journal.close()
    return _answer(rows, plan, known, titles)


def _read(files: Sequence[str], mapping: ObservedMapping) -> Observed:
    try:
        return import_observed(files[0], mapping, also=files[1:])
    except SampleError as error:
        fact, remedy = error.fact, error.remedy
        for pattern, words in WORDS:
            fact, remedy = pattern.sub(words, fact), pattern.sub(words, remedy)
        raise SampleError(fact, remedy=remedy, details=error.details) from error


def _learned(rows: Observed, model: Model) -> dict[str, Any]:
    """A limit's time comes from the latest row of the last day that has it: at night the load is not rising."""
    last_s = rows.time_s[-1]
    ahead: dict[str, Any] = {}
    for at_s, load in zip(rows.time_s, rows.load, strict=True):
        if isfinite(load):
            model.remember(at_s, load)
            if at_s > last_s - DAY_S:
                ahead |= {
                    limit["id"]: limit["at_s"] for limit in model.described(at_s)["limits"] if limit["at_s"] is not None
                }
    known = model.described(last_s)
    limits = []
    for limit in known["limits"]:
        use = next((share for share in reversed(rows.use.get(limit["id"], ())) if isfinite(share)), None)
        limits.append({**limit, "at_s": ahead.get(limit["id"]), "use": use})
    return {**known, "limits": limits}


def _answer(rows: Observed, plan: WatchPlan, model: Mapping[str, Any], titles: Mapping[str, str]) -> ImportedWatch:
    notes = [*rows.notes, *_apart(rows)]
    age_s = time.time() - rows.time_s[-1]
    if age_s > FORGET_S:
        notes.append(
            f"The last row is {age_s / 86400:.0f} days old: a watch learns from the last {FORGET_S / 86400:.0f} days, "
            "so it will keep what was learned here only until its own first fit."
        )
    shows = rows.response_s is not None and ranges(rows.load, rows.response_s) is not None
    if shows:
        notes.append(
            "A bend is looked for in the response that was imported; what is normal is learned from a watch's own."
        )
    elif rows.response_s is not None:
        notes.append("Whether the response bends is not known: too few rows have one, or the load hardly differs.")
    notes += _beyond_the_load(rows, {limit["id"] for limit in model["limits"]})
    loads = [value for value in rows.load if isfinite(value)]
    return ImportedWatch(
        folder=plan.folder,
        name=rows.name,
        load=plan.load or "load",
        rows=len(rows.time_s),
        from_s=rows.time_s[0],
        to_s=rows.time_s[-1],
        model=model,
        has_response=shows,
        bend=bend(rows.load, rows.response_s) if rows.response_s is not None else None,
        highest_load=max(loads, default=None),
        highest_use={
            name: max(known)
            for name, shares in rows.use.items()
            if (known := [share for share in shares if isfinite(share)])
        },
        titles={name: titles.get(name, name) for name in rows.use},
        notes=tuple(notes),
    )


def _beyond_the_load(rows: Observed, loaded: set[str]) -> Iterator[str]:
    """Since when a use has been different at equal load; uses that follow the hour of the day, and those that may
    follow either. loaded: those that have a load."""
    at = np.array(rows.time_s), np.array(rows.load)
    uses = {f"the use of {name}": np.array(shares) for name, shares in rows.use.items()}
    for regime in (*regimes.changes(*at, uses), *regimes.recent(*at, uses)):
        yield f"{change(regime)}; rows from before it were learned from, too."
    drivers = {name: driver(*at, use) for name, use in rows.use.items()}
    if hourly := [name for name, cause in drivers.items() if cause == "hour" and name not in loaded]:
        yield f"The hour of the day drives it rather than the load: {', '.join(hourly)}."
    if either := [name for name, cause in drivers.items() if cause == "either" and name in loaded]:
        yield f"{EITHER}: {', '.join(either)}."


def _apart(rows: Observed) -> list[str]:
    at, uses = (np.array(rows.time_s), np.array(rows.load)), {name: np.array(use) for name, use in rows.use.items()}
    response = None if rows.response_s is None else np.array(rows.response_s)
    return [
        *absent(missing(at[0])),
        *(words_of(peak) for name, use in uses.items() if (peak := apart(name, *at, use, response))),
        *(growing(growth) for name, use in uses.items() if (growth := grows(name, *at, use))),
    ]


def _head(rows: Observed, plan: WatchPlan) -> dict[str, Any]:
    steps = [second - first for first, second in zip(rows.time_s, rows.time_s[1:], strict=False)]
    return {
        "schema": SCHEMA, "subject": plan.subject or rows.name, "interval_s": min(steps, default=0.0), "every_s": None,
        "load": plan.load, "host": identity.host_name(), "boot": "", "version": __version__, "pids": [],
        "imported": rows.name,
    }  # fmt: skip


def _line(rows: Observed, at: int) -> dict[str, Any]:
    columns = {"load": rows.load, "throughput": rows.throughput, "observed_response_s": rows.response_s}
    known = {name: values[at] for name, values in columns.items() if values is not None and isfinite(values[at])}
    use = {name: shares[at] for name, shares in rows.use.items() if isfinite(shares[at])}
    return {"values": {}, "use": use, **known}


def _check_times(rows: Observed) -> None:
    first, last = rows.time_s[0], rows.time_s[-1]
    if first < FIRST_S:
        raise SampleError(
            f"The times of {rows.name} begin at {first:g}: they are no wall clock",
            remedy="Add a column `time` (seconds since 1970, or ISO 8601).",
        )
    if last > time.time() + AHEAD_S:
        moment = time.strftime("%Y-%m-%d %H:%M", time.gmtime(min(last, 4e9)))
        raise SampleError(
            f"The last row of {rows.name} is at {moment} UTC, which is in the future",
            remedy="Correct its times; seconds or milliseconds since 1970, or ISO 8601.",
        )
