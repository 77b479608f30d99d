"""Both samplers around one step: perf if that works, the states of all threads always. Order of calls: `prepare`,
`start`, `follow` as processes come, `stop`, `write`. Stacks are collapsed (Brendan Gregg's FlameGraph,
stackcollapse-*.pl): frames from the outermost on, joined by semicolons, a blank and the count; frames of the kernel end
with `_[k]`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadframe.errors import LoadframeError
from loadframe.model import ProfileKind, ProfileSource, Requirement, Stack
from loadframe.recording.profiles.perf import KERNEL_SUFFIX, PerfRecord, Permission, Reading, Sample, Scope, lacks
from loadframe.recording.profiles.threads import ThreadSampler

TARGET, DRIVER, REST = "target", "driver", "rest"
IDLE = 0

Keep = Callable[[str, str], None]
"""Called with a file's name and text."""


class Profiler:
    """scratch: an empty folder for what perf writes."""

    def __init__(self, permission: Permission, scratch: Path) -> None:
        self._permission = permission
        self._scratch = scratch
        self._components: dict[int, str] = {}
        self._threads = ThreadSampler(lambda: tuple(self._components))
        self._perf: PerfRecord | None = None
        self.missing: list[Requirement] = list(permission.missing)

    def prepare(self) -> None:
        """Before the load: perf takes up to a second to begin, and needs no processes to sample the machine."""
        if self._permission.scope == "machine":
            self._start_perf("machine")

    def start(self, components: dict[int, str]) -> None:
        """Once the load runs. components: pid -> target or driver."""
        self.follow(components)
        if self._permission.scope not in (None, "machine"):
            self._start_perf(self._permission.scope)
        self._threads.start()

    def _start_perf(self, scope: Scope) -> None:
        try:
            self._perf = PerfRecord.start(scope, sorted(self._components), self._scratch)
        except LoadframeError as error:
            self.missing.append(lacks("a CPU profile", str(error)))

    def follow(self, components: dict[int, str]) -> None:
        """Earlier processes stay, also ended ones."""
        self._components = {**self._components, **components}

    def stop(self) -> None:
        self._threads.stop()
        if self._perf is not None and (failure := self._perf.stop()) is not None:
            self._perf = None
            self.missing.append(lacks("a CPU profile", f"perf said: {failure}"))

    def write(self, start_s: float, end_s: float, name: str, keep: Keep) -> tuple[ProfileSource, ...]:
        """Of the window (CLOCK_MONOTONIC), as NAME.COMPONENT.KIND.folded."""
        sources = []
        if self._perf is not None:
            reading = Reading()
            sampled = [sample for sample in self._perf.samples(reading) if sample.time_s <= end_s]
            if self._perf.unreadable is not None:
                how = f"perf script said: {self._perf.unreadable}"
                self.missing.append(lacks("a part of the CPU profile", how))
            from_s = max(start_s, min((sample.time_s for sample in sampled), default=end_s))
            inside = [sample for sample in sampled if sample.time_s >= from_s and sample.pid != IDLE]
            for component in (TARGET, DRIVER, REST):
                chosen = [sample for sample in inside if self._components.get(sample.pid, REST) == component]
                lost = reading.lost + reading.damaged
                source = ProfileSource("cpu", component, "", len(chosen), self._perf.hz, end_s - from_s, lost)
                sources += _write(chosen, keep, name, source)
        looked, looks = self._threads.between(start_s, end_s)
        for component in (TARGET, DRIVER):
            chosen = [sample for sample in looked if self._components.get(sample.pid) == component]
            source = ProfileSource("threads", component, "", len(chosen), looks, end_s - start_s)
            sources += _write(chosen, keep, name, source)
        return tuple(sources)


def components_of(target: Iterable[int], driver: Iterable[int]) -> dict[int, str]:
    """By pid; a target within the driver's processes is the target."""
    target = tuple(target)
    return dict.fromkeys(driver, DRIVER if target else TARGET) | dict.fromkeys(target, TARGET)


def _write(samples: Sequence[Sample], keep: Keep, name: str, source: ProfileSource) -> list[ProfileSource]:
    if not samples:
        return []
    stacks = collapse(_frames(sample, source.component, source.kind) for sample in samples)
    file = f"{name}.{source.component}.{source.kind}.folded"
    keep(file, render_stacks(stacks))
    return [replace(source, file=file)]


def _frames(sample: Sample, component: str, kind: ProfileKind) -> tuple[str, ...]:
    """Of processes outside the study only kernel frames are kept."""
    if kind == "threads":
        return sample.frames
    if component == REST:
        return (sample.command, *(frame for frame in sample.frames if frame.endswith(KERNEL_SUFFIX)))
    return (sample.command, *sample.frames)


COUNT = re.compile(r"[1-9][0-9]{0,17}")
MOST_FRAMES = 512
"""perf's own bound is kernel.perf_event_max_stack, 127 by default."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    """damaged: lines that could not be read."""

    stacks: tuple[Stack, ...]
    damaged: int = 0


def collapse(samples: Iterable[tuple[str, ...]]) -> tuple[Stack, ...]:
    """The most frequent first, ties by name."""
    counts = Counter(tuple(_clean(frame) for frame in frames) for frames in samples)
    counts.pop((), None)
    return _ranked(counts)


def _ranked(counts: Counter[tuple[str, ...]]) -> tuple[Stack, ...]:
    return tuple(Stack(frames, count) for frames, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def render_stacks(stacks: Iterable[Stack]) -> str:
    return "".join(f"{';'.join(stack.frames)} {stack.count}\n" for stack in stacks)


def parse_stacks(text: str) -> Collapsed:
    """Other lines (a damaged or foreign file) are counted and left out."""
    counts: Counter[tuple[str, ...]] = Counter()
    damaged = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        stack, _, count = line.rstrip("\r").rpartition(" ")
        frames = tuple(stack.split(";"))
        if not COUNT.fullmatch(count) or len(frames) > MOST_FRAMES or any(_clean(frame) != frame for frame in frames):
            damaged += 1
        else:
            counts[frames] += int(count)
    return Collapsed(_ranked(counts), damaged)


def _clean(frame: str) -> str:
    plain = "".join(char if char.isprintable() else "?" for char in frame.replace(";", ":"))
    return plain.strip() or "[unknown]"
