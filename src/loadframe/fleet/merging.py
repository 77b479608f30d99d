"""From the request logs of several hosts to one: by the coordinator's clock, with one list of operations. Pure.

Requests are put together one by one, so that every quantile of the whole is that of all of them: quantiles of hosts are
never averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import zstandard

from loadframe.errors import StepVoid
from loadframe.fleet.coordinator import REMEDY, LogOf
from loadframe.model.fleet_step import DriverInStep
from loadframe.workloads.request_log import FIELDS, RECORD, Requests

EARLY_SHARE, EARLY_LATENCIES = 0.2, 3.0
"""A driver has ended too early if its last request ended before the window did by more than EARLY_SHARE of the window
and by more than EARLY_LATENCIES times its longest latency."""
LONGER_WARMUP = "Give measure.warmup more time than the slowest driver takes from its start to its first request."


@dataclass(frozen=True)
class Merged:
    """All requests in the order of their ends; operations: their names by index; drivers: what each host did."""

    requests: Requests
    operations: tuple[str, ...]
    drivers: tuple[DriverInStep, ...]

    @property
    def apart_s(self) -> float:
        """From the first driver's first request to the last one's first."""
        begun = [each.began_s for each in self.drivers if each.requests]
        return max(begun) - min(begun) if begun else 0.0


def merge(logs: Sequence[LogOf], known: Sequence[str]) -> Merged:
    """known: operations that have their index already. StepVoid for a log that is none."""
    numbers: dict[str, int] = {}
    names, parts, drivers = list(known), [], []
    for number, name in enumerate(names):
        numbers.setdefault(name, number)
    for log in logs:
        records = np.frombuffer(unpacked(log), dtype=FIELDS).copy()
        told = [str(name) for name in log.told.get("operations") or ()]
        for name in told:
            if name not in numbers:
                numbers[name] = len(names)
                names.append(name)
        places = np.array([numbers[name] for name in told] or [0], dtype=np.uint32)
        if len(records) and int(records["operation"].max()) >= max(len(told), 1):
            raise _refused(log, "names a kind of request that it does not tell of")
        if not np.isfinite(records["end_s"]).all() or not np.isfinite(records["latency_ms"]).all():
            raise _refused(log, "has times that are no numbers")
        clock = log.clock
        rate = (clock.theirs_s(clock.at_s + 1.0) - clock.theirs_s(clock.at_s)) - 1.0
        records["end_s"] = clock.at_s + (records["end_s"] - clock.offset_s - clock.at_s) / (1.0 + rate)
        records["operation"] = places[records["operation"]]
        begins = records["end_s"] - records["latency_ms"] / 1000.0
        drivers.append(
            DriverInStep(
                log.host,
                log.share,
                clock,
                len(records),
                float(begins.min()) if len(records) else 0.0,
                float(records["end_s"].max()) if len(records) else 0.0,
                log.size,
                len(log.compressed),
            )
        )
        parts.append(records)
    whole = np.concatenate(parts) if parts else np.empty(0, dtype=FIELDS)
    whole = whole[np.argsort(whole["end_s"], kind="stable")]
    requests = Requests(*(whole[name].copy() for name, _ in FIELDS))
    return Merged(requests, tuple(names), tuple(drivers))


def check_all_along(merged: Merged, start_s: float, end_s: float) -> None:
    """Of a closed loop without pauses: every driver worked over the whole window. StepVoid for one that began after the
    window did, or ended long before it: the load of the window was not what it is called."""
    longest_s = float(merged.requests.latency_ms.max(initial=0.0)) / 1000.0
    for driver in merged.drivers:
        name = f"host {driver.host!r}"
        if not driver.requests:
            raise StepVoid(driver.host, "load-failed", f"{name} made no request", remedy=REMEDY)
        if driver.began_s > start_s:
            late = f"{name} made its first request {driver.began_s - start_s:.3g} s after the window began"
            raise StepVoid(driver.host, "late-start", late, remedy=LONGER_WARMUP)
        missing_s = end_s - driver.ended_s
        if missing_s > max(EARLY_SHARE * (end_s - start_s), EARLY_LATENCIES * longest_s):
            early = f"{name} made its last request {missing_s:.3g} s before the window ended"
            raise StepVoid(driver.host, "load-failed", early, remedy=REMEDY)


def unpacked(log: LogOf) -> bytes:
    """The log, of the size that was told. StepVoid for another one."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(log.compressed) as reader:
            data = reader.read(log.size + 1)
    except zstandard.ZstdError as error:
        raise _refused(log, f"cannot be unpacked: {error}") from error
    if len(data) != log.size or len(data) % RECORD.size:
        raise _refused(log, f"has {len(data):,} bytes, and {log.size:,} were told")
    return data


def _refused(log: LogOf, why: str) -> StepVoid:
    return StepVoid(log.host, "log-refused", f"the request log of host {log.host!r} {why}", remedy=REMEDY)
