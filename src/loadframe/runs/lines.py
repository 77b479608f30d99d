"""Short records that only a run folder has."""

import os
import platform
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from loadframe.errors import RunError
from loadframe.model import (
    NOT_RECOVERED,
    WORK,
    AnswersCompared,
    Host,
    Investigation,
    Round,
    SettingValue,
    Step,
    Steps,
    Stop,
    TargetState,
)
from loadframe.runs.formats import DAMAGED, encode
from loadframe.system.kernel import kernel_text


@dataclass(frozen=True, slots=True)
class Treatment:
    """kind: of the target, "" in runs of one target. cold_of: the treatment of which this is the cold one."""

    name: str
    title: str
    state: TargetState
    kind: str = ""
    cold_of: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    treatment: str
    values: Mapping[str, SettingValue]


@dataclass(frozen=True, slots=True)
class BenchFacts:
    """version: of the target. axis_unit, work_unit: what the load axis and throughput count; "" where not known. seed:
    of the random order. distributions: others that registered the study's kinds. notes: of its targets, and on what of
    a recorded load is sent. answers: of the target and of comparable programs. versions: by kind of target, where there
    are several."""

    version: str = ""
    axis_unit: str = ""
    seed: int = 0
    distributions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    work_unit: str = WORK
    answers: tuple[AnswersCompared, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rounds:
    rounds: tuple[Round, ...]


def flagged(steps: Steps, stops: Sequence[Stop]) -> list[Step]:
    """With a flag for those after which the target had failed: that was not known when they were written."""
    after = {stop.step for stop in stops}
    return [
        replace(step, flags=tuple(dict.fromkeys((*step.flags, NOT_RECOVERED)))) if step.number in after else step
        for step in steps
    ]


MOST_STEPS = 2**31
"""Tables hold the numbers of steps, rounds and blocks in 64 bits."""


def refuse(where: str, faults: Iterable[str]) -> None:
    if (fault := next(iter(faults), None)) is not None:
        raise RunError(f"{where}: {fault}", remedy=DAMAGED)


def check_steps(steps: Steps, where: str) -> None:
    seen: set[int] = set()
    for line, step in enumerate(steps, start=1):
        twice = [f"there is a step {step.number} before it already"] if step.number in seen else []
        refuse(f"{where}, line {line}", (*_faults_of_step(step), *twice))
        seen.add(step.number)


ROW = ("step", "level", "throughput", "errors")
"""In every row of a footprint (record.footprint)."""


def faults_of_rounds(rounds: Iterable[Round]) -> Iterator[str]:
    for round_ in rounds:
        for row in round_.footprint:
            if missing := [name for name in ROW if name not in row]:
                yield f"a row of round {round_.number} has no {missing[0]}"
        loads = [point.load for point in round_.curve.points]
        if (lowest := min((*(row["level"] for row in round_.footprint), *loads), default=1.0)) <= 0:
            yield f"round {round_.number} has the level {lowest:g}"
        if (peak := round_.curve.peak.load) not in loads:
            yield f"the curve of round {round_.number} has no point at its peak, {peak:g}"


SHORTEST_MS = 1e-9
"""Shortest latency: a hundredth of the time that light takes across a CPU."""


def faults_of(investigation: Investigation) -> Iterator[str]:
    """Faults of its rounds, its variants, and its latencies."""
    alternatives = (alternative.round for alternative in investigation.alternatives)
    yield from faults_of_rounds((*investigation.rounds, *alternatives))
    for variant in investigation.variants:
        if variant.at not in [row.load for row in variant.levels]:
            yield f"the gain has no load {variant.at:g}, at which it is reported"
    for distribution in investigation.latencies:
        whose = f"the latencies of {distribution.treatment!a} have"
        if distribution.requests < 1 or not distribution.points or distribution.level <= 0:
            yield f"{whose} no request"
        for point in distribution.points:
            if point.one_in < 1 or point.latency_ms < SHORTEST_MS:
                yield f"{whose} one request in {point.one_in:g} above {point.latency_ms:g} ms"


def _faults_of_step(step: Step) -> Iterator[str]:
    whole = {"number": step.number, "round": step.round, "block": step.block}
    for name, number in whole.items():
        if number is not None and not 0 <= number < MOST_STEPS:
            yield f"{name} is {number}"
    if not step.level > 0:
        yield f"step {step.number} has level {step.level:g} and throughput {step.throughput:g}"
    latency = step.latency
    counted: dict[str, Iterable[float]] = {
        "throughput": (step.throughput, *step.batches),
        "requests": (step.requests, *(operation.requests for operation in step.operations)),
        "errors": (step.errors, *(operation.errors for operation in step.operations)),
        "waiting_share": (step.waiting_share,),
        "think_s": (step.think_s,),
        "needed_s": (step.needed_s,),
        "latency": (latency.mean_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms),
        "operations": (time_ms for operation in step.operations for time_ms in (operation.mean_ms, operation.p95_ms)),
    }
    for name, values in counted.items():
        if (bad := min(values, default=0.0)) < 0:
            yield f"{name} of step {step.number} is {bad:g}"
    times = (step.started_s, step.window_start_s, step.window_end_s, step.ended_s)
    if min(times) < 0 or step.window_end_s < step.window_start_s or step.ended_s < step.started_s:
        shown = (f"{at_s:g}" for at_s in times)
        yield f"step {step.number} began, was counted from, until, and ended at {', '.join(shown)} s"


PROGRESS = "progress.jsonl"
"""What a run is doing now. Lines are not fsynced, as that would disturb the disk that is measured; the last ones may be
lost. The writer holds a lock on the file (files.hold), which ends with its process, also after SIGKILL: so a run in
progress is distinguished from one that was killed."""

Event = Literal["phase", "say", "step", "recorder"]


@dataclass(frozen=True, slots=True)
class Told:
    """at: wall clock, ISO 8601. phase: `words`, about `steps` steps. say: `words`. step: a step begins, for `purpose`;
    its load lasts about `seconds`. recorder: its cost so far: CPU-seconds per second, peak resident memory, late or
    missed ticks."""

    event: Event
    words: str = ""
    steps: int = 0
    treatment: str = ""
    level: float | None = None
    seconds: float | None = None
    purpose: str = ""
    cpu_share: float | None = None
    rss_bytes: float | None = None
    late_ticks: int | None = None
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


class ProgressLog:
    """Takes over an open, locked file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.lost = 0
        """Lines that the disk did not take."""
        self._end = weakref.finalize(self, os.close, descriptor)

    def tell(self, line: Told) -> None:
        """Never raises OSError: the measurement reports a full disk."""
        try:
            os.write(self._descriptor, encode("progress", line) + b"\n")
        except OSError:
            self.lost += 1

    def close(self) -> None:
        self._end()


def read_host(root: Path = Path("/")) -> Host:
    cpuinfo = _text(root / "proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.M)
    huge = re.search(r"\[(\w+)\]", _text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    release = re.search(r'^PRETTY_NAME="?([^"\n]+)', _text(root / "etc/os-release"), re.M)
    facts = {
        "system": release[1] if release else "",
        "governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
        "huge pages": huge[1] if huge else "",
        "python": platform.python_version(),
    }
    return Host(
        hostname=_text(root / "proc/sys/kernel/hostname").strip(),
        kernel=_text(root / "proc/sys/kernel/osrelease").strip(),
        cpu_model=model[1].strip() if model else platform.machine(),
        cpus=len(os.sched_getaffinity(0)) if root == Path("/") else len(re.findall(r"^processor", cpuinfo, re.M)),
        memory_bytes=int(memory[1]) * 1024 if memory else 0,
        virtualisation="virtual machine" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.M) else "none seen",
        facts={name: value for name, value in facts.items() if value},
    )


def _text(file: Path) -> str:
    try:
        return kernel_text(file)
    except OSError:
        return ""
