"""Hosts of a fleet that are not there: a transport (loadframe_fleet.transport) with a clock of its own, on which the
real coordinating code takes its steps. For benchmarks/fleet.py and its test.

Time goes on where something takes some: the coordinator's CPU for each message, its link (one queue out, one in), the
way of each message, the link of each host, and what a host does. Nothing is drawn twice: a world with the same seed is
the same world. What a host would keep (its request log) is computed where it is asked for, so that the memory that is
measured is the coordinator's.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from loadframe.workloads.request_log import FIELDS
from loadframe_fleet.transport import Arrived
from loadframe_fleet.wire import BEAT_S, SILENT_S, written

BEGUN_S = 1000.0
OPERATIONS = ("get", "put")
LOSSES = ("closed", "silent")
"""closed: its agent ends, and its connection with it. silent: its link is cut, and neither end is told."""
BEAT = len(written({"beat": True}))


@dataclass(frozen=True, slots=True)
class Middle:
    """The coordinator's machine: CPU seconds for each message in or out, bytes per second of its link, each way."""

    message_s: float = 75e-6
    link_bytes_per_s: float = 125e6


@dataclass(frozen=True, slots=True)
class Loss:
    """Which host is lost, as which of LOSSES, once it has heard this question."""

    host: str
    question: str
    kind: str = "closed"


@dataclass(slots=True)
class Host:
    """One of them. Its monotonic clock is ahead by offset_s at BEGUN_S, and gains. A message takes there_s or back_s at
    least, and up to jitter_s more. ready_s: until its driver is ready; over_s: after its time, until its log is."""

    name: str
    number: int
    offset_s: float
    gains: float
    there_s: float
    back_s: float
    jitter_s: float
    bytes_per_s: float
    ready_s: float
    over_s: float
    requests: int
    recorded_bytes: int = 0
    """Of its recording, when it was last flushed."""
    lost: str = ""
    start_s: float = 0.0
    """By the coordinator's clock: when its first request begins, where it is not too late."""
    cancelled: bool = False

    def theirs(self, at_s: float) -> float:
        """What its clock shows then."""
        return at_s + self.offset_s + self.gains * (at_s - BEGUN_S)

    def ours(self, theirs_s: float) -> float:
        """When its clock shows this."""
        return BEGUN_S + (theirs_s - self.offset_s - BEGUN_S) / (1.0 + self.gains)


@dataclass(frozen=True, slots=True)
class Kind:
    """What hosts are like. round_trip_s: the median, log-normal with this spread; uneven: the most of a round trip that
    one direction has. slow: share of hosts with a link of slow_bytes_per_s; stragglers: share of those that take
    straggles times as long. clock_s, drift: clocks are off by up to this, and gain up to this."""

    round_trip_s: float = 0.0005
    spread: float = 0.5
    uneven: float = 0.7
    jitter: float = 1.0
    slow: float = 0.0
    slow_bytes_per_s: float = 250e3
    bytes_per_s: float = 125e6
    stragglers: float = 0.0
    straggles: float = 10.0
    clock_s: float = 1e5
    drift: float = 50e-6
    ready_s: float = 0.5
    requests: int = 200


LABORATORY = Kind()
WIDE = Kind(round_trip_s=0.03, spread=0.8, slow=0.02, stragglers=0.02, drift=100e-6)
"""Many places: far, some slow, some late; clocks that gain as much as cheap ones do."""


def hosts_of(kind: Kind, count: int, seed: int) -> list[Host]:
    """Drawn anew for each count."""
    draw = random.Random(f"{seed}/{count}")
    found = []
    for number in range(count):
        round_trip_s = kind.round_trip_s * math.exp(draw.gauss(0.0, kind.spread))
        there = draw.uniform(1 - kind.uneven, kind.uneven)
        times = kind.straggles if draw.random() < kind.stragglers else 1.0
        found.append(
            Host(
                f"h{number}", number, draw.uniform(-kind.clock_s, kind.clock_s), draw.uniform(-kind.drift, kind.drift),
                round_trip_s * there, round_trip_s * (1 - there), kind.jitter * round_trip_s,
                kind.slow_bytes_per_s if draw.random() < kind.slow else kind.bytes_per_s,
                times * kind.ready_s * draw.uniform(0.5, 1.5), times * draw.uniform(0.0, 0.2),
                max(1, round(kind.requests * draw.uniform(0.5, 1.5))),
            )
        )  # fmt: skip
    return found


@dataclass
class Counted:
    """What went over the coordinator's link. messages: by question. most_under_way: bytes that were asked for by `read`
    and had not come, at most."""

    out_bytes: int = 0
    in_bytes: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    most_under_way: int = 0


@dataclass(frozen=True, slots=True)
class _Coming:
    """An answer that is on its way."""

    host: Host
    number: int
    question: str
    values: Mapping[str, Any]
    heard_s: float
    gone: str = ""


class Simulated:
    """See transport.Transport. seed: of the ways of messages and of the logs."""

    def __init__(self, hosts: Sequence[Host], middle: Middle, seed: int = 0, loss: Loss | None = None) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.middle = middle
        self.counted = Counted()
        self.time_s = BEGUN_S
        self._seed = seed
        self._draw = random.Random(seed)
        self._loss = loss
        self._numbers = itertools.count(1)
        self._coming: list[tuple[float, int, _Coming]] = []
        self._here: tuple[float, Arrived] | None = None
        self._out_s = self._in_s = BEGUN_S
        self._duration_s = 0.0
        self._log_kept: tuple[int, bytes, int] = (-1, b"", 0)

    # --- what the coordinator sees ---

    def now_s(self) -> float:
        """See Transport."""
        return self.time_s

    def ask(self, host: str, question: str, values: Mapping[str, Any]) -> int:
        """See Transport. It takes the coordinator's CPU, and leaves when what was asked before has."""
        number, there = next(self._numbers), self.hosts[host]
        size = len(written({"id": number, "ask": question, **values}))
        self.counted.out_bytes += size
        self.counted.messages[question] += 1
        if question == "read":
            self.counted.under_way += int(values["size"])
            self.counted.most_under_way = max(self.counted.most_under_way, self.counted.under_way)
        self.time_s += self.middle.message_s
        self._out_s = max(self._out_s, self.time_s) + size / self.middle.link_bytes_per_s
        heard_s = self._out_s + self._way(there, there.there_s, size)
        if there.lost:
            if there.lost == "closed":
                self._send(self._out_s, _Coming(there, 0, question, {}, heard_s, "its agent has gone"))
            return number
        if self._loss is not None and (host, question) == (self._loss.host, self._loss.question):
            there.lost = self._loss.kind
            told_s, why = heard_s + there.back_s, "its agent has gone"
            if there.lost == "silent":
                told_s, why = heard_s + SILENT_S, f"nothing has come from it for {SILENT_S:g} s"
            self._send(told_s, _Coming(there, 0, question, {}, heard_s, why))
            return number
        after_s = self._obey(there, question, values, heard_s)
        self._send(heard_s + after_s + there.back_s, _Coming(there, number, question, dict(values), heard_s))
        return number

    def arrived(self, until_s: float) -> Arrived | None:
        """See Transport. What comes goes through the coordinator's link, then through its CPU."""
        if self._here is None and self._coming:
            at_s, _, coming = self._coming[0]
            if at_s <= until_s:
                heapq.heappop(self._coming)
                came, size = self._come(coming)
                self.counted.in_bytes += size
                self._in_s = max(self._in_s, at_s) + size / self.middle.link_bytes_per_s
                self._here = self._in_s, came
        if self._here is None or max(self._here[0], self.time_s) > until_s:
            self.time_s = max(self.time_s, until_s)
            return None
        at_s, came = self._here
        self._here = None
        self.time_s = max(self.time_s, at_s) + self.middle.message_s
        return Arrived(came.host, came.number, self.time_s, came.answer, gone=came.gone)

    # --- what is true ---

    def log(self, host: Host) -> NDArray[Any]:
        """Its requests, by its own clock, as it would have written them down."""
        draw = np.random.default_rng((self._seed, host.number))
        records = np.zeros(host.requests, dtype=FIELDS)
        latency_s = draw.lognormal(math.log(0.004), 0.7, host.requests)
        begins_s = np.sort(draw.uniform(0.0, 0.98 * self._duration_s, host.requests))
        begins_s[0] = 0.0
        records["end_s"] = host.theirs(host.start_s) + begins_s + latency_s
        records["latency_ms"] = 1000.0 * latency_s
        records["operation"] = draw.integers(0, len(OPERATIONS), host.requests)
        return records

    def beats_bytes(self, seconds: float) -> int:
        """What all beats take in that time, each way."""
        return int(len(self.hosts) * BEAT * seconds / BEAT_S)

    # --- inside ---

    def _way(self, host: Host, least_s: float, size: int) -> float:
        return least_s + self._draw.random() * host.jitter_s + size / host.bytes_per_s

    def _send(self, at_s: float, coming: _Coming) -> None:
        heapq.heappush(self._coming, (at_s, next(self._numbers), coming))

    def _obey(self, host: Host, question: str, values: Mapping[str, Any], heard_s: float) -> float:
        """What it does; the answer leaves so long after it has heard."""
        jitter_s = self._draw.random() * host.jitter_s
        match question:
            case "prepare":
                self._duration_s = float(values["duration_s"])
                host.cancelled = False
                return host.ready_s
            case "start":
                host.start_s = max(host.ours(float(values["at_s"])), heard_s)
            case "ended":
                return max(0.0, host.start_s + self._duration_s + host.over_s - heard_s)
            case "cancel":
                host.cancelled = True
            case "read":
                return jitter_s + float(values["size"]) / host.bytes_per_s
        return jitter_s

    def _come(self, coming: _Coming) -> tuple[Arrived, int]:
        host, values = coming.host, coming.values
        if coming.gone:
            return Arrived(host.name, 0, 0.0, gone=coming.gone), 0
        answer: dict[str, Any] = {}
        match coming.question:
            case "clock":
                answer = {"wall_s": coming.heard_s, "monotonic_s": host.theirs(coming.heard_s)}
            case "start":
                answer = {"late_s": host.theirs(coming.heard_s) - float(values["at_s"])}
            case "ended":
                compressed, size = self._compressed(host)
                answer = {
                    "log_bytes": size, "sent_bytes": len(compressed), "requests": host.requests,
                    "operations": list(OPERATIONS), "marks": [],
                }  # fmt: skip
            case "flush":
                answer = {"bytes": host.recorded_bytes}
            case "counted":
                answer = {"offered": None, "moved_bytes": 100 * host.requests}
            case "read":
                self.counted.under_way -= int(values["size"])
                if values["what"] == "log":
                    piece = self._compressed(host)[0][values["offset"] :][: values["size"]]
                else:
                    piece = bytes(min(int(values["size"]), host.recorded_bytes - int(values["offset"])))
                answer = {"data": base64.b64encode(piece).decode()}
        return Arrived(host.name, coming.number, 0.0, answer), len(written({"id": coming.number, "answer": answer}))

    def _compressed(self, host: Host) -> tuple[bytes, int]:
        if self._log_kept[0] != host.number:
            log = self.log(host).tobytes()
            compressed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(log)
            self._log_kept = host.number, compressed, len(log)
        return self._log_kept[1:]
