"""How often the stage that limits a pipeline is named rightly, on simulated pipelines, beside two rules of thumb.

`python benchmarks/stages.py [--pipelines N] [--json]`. Each pipeline has 2 to 5 stages with 1 to 8 workers, operations
of random times, queues with and without a bound, and a source that has no end or brings a given rate. What limits is
found by moving it: of each stage the workers are doubled and the same pipeline is simulated once more. The stage with
the largest gain limits, if that is a tenth at least. Where none gains as much it is the source, or no single stage.
The rules of thumb name the stage with the longest operations, and the one with the most operations waiting before it.
Ends with 1 where fewer than 95 % are named rightly.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadframe_pipelines.stages import Limiting, Stage, limiting

WARM_S, WINDOW_S = 20.0, 60.0
GAINS = 1.1
UNBOUNDED = 10**9
RULES = ("ours", "longest operation", "longest queue")
LEAST_RIGHT = 95.0
"""Per cent of the pipelines."""


@dataclass(frozen=True)
class Part:
    """A stage: its workers, the mean time of an operation, how its times scatter, and the room of the queue before."""

    workers: int
    mean_s: float
    scatter: str
    room: int


@dataclass(frozen=True)
class Pipeline:
    """rate: operations a second that the source brings; None: as many as are taken. seed: of the times drawn."""

    parts: tuple[Part, ...]
    rate: float | None
    seed: int


@dataclass
class Seen:
    """Of a stage in the window: worker-seconds and operations, and the integral of its queue."""

    busy_s: float = 0.0
    blocked_s: float = 0.0
    done: int = 0
    waiting_s: float = 0.0
    first: int = 0
    last: int = 0


class Simulation:
    """Stages in a row, each blocked while the queue behind it is full (blocking after service)."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.parts = pipeline, pipeline.parts
        self.random = random.Random(pipeline.seed)
        self.waiting = [0] * len(self.parts)
        self.busy = [0] * len(self.parts)
        self.blocked = [0] * len(self.parts)
        self.seen = [Seen() for _ in self.parts]
        self.now_s = 0.0
        self.events: list[tuple[float, int]] = []

    def run(self) -> list[Seen]:
        if self.pipeline.rate is not None:
            self._arrive()
        self._fill()
        while self.events and self.events[0][0] < WARM_S + WINDOW_S:
            at_s, place = heapq.heappop(self.events)
            self._pass(at_s)
            if place < 0:
                self.waiting[0] += 1
                self._arrive()
            else:
                self.busy[place] -= 1
                self.blocked[place] += 1  # until it has handed on
                self.seen[place].done += self.now_s >= WARM_S
            self._fill()
        self._pass(WARM_S + WINDOW_S)
        return self.seen

    def _arrive(self) -> None:
        assert self.pipeline.rate is not None
        heapq.heappush(self.events, (self.now_s + self.random.expovariate(self.pipeline.rate), -1))

    def _pass(self, at_s: float) -> None:
        """Time goes on; what was is counted, from the end of the warm-up on."""
        length_s = max(0.0, at_s - max(self.now_s, WARM_S))
        if self.now_s < WARM_S <= at_s:
            for one, waiting in zip(self.seen, self.waiting, strict=True):
                one.first = waiting
        for place, one in enumerate(self.seen):
            one.busy_s += length_s * self.busy[place]
            one.blocked_s += length_s * self.blocked[place]
            one.waiting_s += length_s * self.waiting[place]
            one.last = self.waiting[place]
        self.now_s = at_s

    def _fill(self) -> None:
        """Whatever can go on does, from the last stage to the first, so that room is made before it is wanted."""
        moved = True
        while moved:
            moved = False
            for place in reversed(range(len(self.parts))):
                moved |= self._hand_on(place) | self._take(place)

    def _hand_on(self, place: int) -> bool:
        last = place == len(self.parts) - 1
        free = self.blocked[place] if last else self.parts[place + 1].room - self.waiting[place + 1]
        many = min(self.blocked[place], free)
        self.blocked[place] -= many
        if not last:
            self.waiting[place + 1] += many
        return many > 0

    def _take(self, place: int) -> bool:
        endless = place == 0 and self.pipeline.rate is None
        free = self.parts[place].workers - self.busy[place] - self.blocked[place]
        many = free if endless else min(free, self.waiting[place])
        for _ in range(many):
            heapq.heappush(self.events, (self.now_s + self._time_s(self.parts[place]), place))
        self.busy[place] += many
        self.waiting[place] -= 0 if endless else many
        return many > 0

    def _time_s(self, part: Part) -> float:
        match part.scatter:
            case "none":
                return part.mean_s
            case "exponential":
                return self.random.expovariate(1 / part.mean_s)
            case _:
                return part.mean_s * self.random.lognormvariate(-0.5, 1.0)


def drawn(rng: random.Random) -> Pipeline:
    """A pipeline of any kind."""
    parts = tuple(
        Part(
            rng.choice((1, 1, 2, 4, 8)),
            0.01 * 10 ** rng.uniform(-0.5, 1.0),
            rng.choice(("none", "exponential", "log-normal")),
            rng.choice((2, 10, 100, UNBOUNDED)),
        )
        for _ in range(rng.randint(2, 5))
    )
    capacity = min(part.workers / part.mean_s for part in parts)
    rate = rng.uniform(0.3, 0.8) * capacity if rng.random() < 0.2 else None
    return Pipeline(parts, rate, rng.randrange(2**32))


def told(pipeline: Pipeline, seen: Sequence[Seen]) -> list[Stage]:
    """What its stages would print, as Loadframe derives it."""
    stages = []
    for number, (part, one) in enumerate(zip(pipeline.parts, seen, strict=True)):
        busy, blocked = (value / (WINDOW_S * part.workers) for value in (one.busy_s, one.blocked_s))
        waiting = one.waiting_s / WINDOW_S
        done = one.done / WINDOW_S
        stages.append(
            Stage(
                str(number),
                busy=busy,
                blocked=blocked,
                idle=max(0.0, 1 - busy - blocked),
                at_work=busy * part.workers,
                workers=float(part.workers),
                done=done,
                entries=done,
                waiting=waiting,
                growth=(one.last - one.first) / WINDOW_S,
                room=None if part.room == UNBOUNDED else waiting / part.room,
                ms_per_op=1000 * one.busy_s / max(one.done, 1),
            )
        )
    return stages


def truth(pipeline: Pipeline, before: float) -> str:
    """The number of the stage that more workers help most; "source" where none helps."""
    gains = []
    for place, part in enumerate(pipeline.parts):
        parts = list(pipeline.parts)
        parts[place] = replace(part, workers=2 * part.workers)
        after = Simulation(replace(pipeline, parts=tuple(parts))).run()[-1].done
        gains.append(after / max(before, 1))
    best = max(range(len(gains)), key=gains.__getitem__)
    if gains[best] >= GAINS:
        return str(best)
    return "source" if pipeline.rate is not None else "none"


def ours(stages: Sequence[Stage]) -> str:
    found = limiting(stages)
    if not isinstance(found, Limiting):
        return "not told"
    return "source" if found.kind == "source" else stages[found.at].name


def score(count: int, seed: int) -> dict[str, dict[str, int]]:
    """By rule how often it was right, wrong, or told nothing, of pipelines that one stage, or the source, limits."""
    rng, found = random.Random(seed), {name: Counter[str]() for name in RULES}
    judged = 0
    while judged < count:
        pipeline = drawn(rng)
        seen = Simulation(pipeline).run()
        right = truth(pipeline, seen[-1].done)
        if right == "none":
            continue  # several are as fast: there is no right answer
        judged += 1
        stages = told(pipeline, seen)
        answers = {
            "ours": ours(stages),
            "longest operation": max(stages, key=lambda stage: stage.ms_per_op or 0.0).name,
            "longest queue": max(stages, key=lambda stage: stage.waiting or 0.0).name,
        }
        for name, answer in answers.items():
            outcome = "right" if answer == right else "not told" if answer == "not told" else "wrong"
            found[name][outcome] += 1
    return {name: dict(counts) for name, counts in found.items()}


def main() -> int:
    """1 where fewer are named rightly than LEAST_RIGHT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipelines", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = score(given.pipelines, given.seed)
    passed = int(100 * found["ours"].get("right", 0) < LEAST_RIGHT * given.pipelines)
    if given.json:
        print(json.dumps({"schema": "loadframe.stages-score/1", "pipelines": given.pipelines, "rules": found}))
        return passed
    print("| rule | right | not told | wrong |\n|---|---|---|---|")
    for name, counts in found.items():
        shares = [f"{100 * counts.get(each, 0) / given.pipelines:.0f} %" for each in ("right", "not told", "wrong")]
        print(f"| {name} | {' | '.join(shares)} |")
    return passed


if __name__ == "__main__":
    sys.exit(main())
