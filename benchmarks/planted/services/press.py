"""A pipeline of stages with queues, which prints what they do (docs/pipelines.md): each request is an entry that passes
through all of them, or, without --port, entries come from a source until --seconds are over.

    --stage NAME,workers=2,ms=5,cpu=0,fixed=0,batch=1,room=64,lock=

ms: waited for per entry; cpu: computed per entry; fixed: waited for per operation of up to `batch` entries; lock: of a
name, held while an operation lasts, by all stages that name it. Environment: WORKERS_NAME, BATCH_NAME in its place.
--rate: entries a second of a source that is slow; without it the first stage takes as many as it can. --pool: workers
that all stages share, of which each takes entries where the queue behind is not full, the last stage first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from common import Answer, around, serve

EVERY_S = 0.1
STATES = ("busy_s", "idle_s", "blocked_s")
Entry = threading.Event


@dataclass
class Shape:
    name: str
    workers: int = 1
    ms: float = 0.0
    cpu: float = 0.0
    fixed: float = 0.0
    batch: int = 1
    room: int = 64
    lock: str = ""


def shape(text: str) -> Shape:
    """NAME,key=value,.. with what the environment says otherwise."""
    name, *pairs = text.split(",")
    found = Shape(name)
    for key, value in (pair.split("=") for pair in pairs):
        setattr(found, key, type(getattr(found, key))(value))
    found.workers = int(os.environ.get(f"WORKERS_{name}", found.workers))
    found.batch = int(os.environ.get(f"BATCH_{name}", found.batch))
    return found


@dataclass
class Stage:
    shape: Shape
    order: int
    lock: AbstractContextManager[object]
    behind: Stage | None = None
    done: int = 0
    entries: int = 0
    cpu_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STATES, 0.0))

    def __post_init__(self) -> None:
        self.queue: queue.Queue[Entry] = queue.Queue(self.shape.room)
        self.mutex = threading.Lock()
        self.now: dict[int, tuple[str, float]] = {}

    def enter(self, state: str | None) -> None:
        """The calling worker goes on to another state; the seconds of the one before are counted."""
        worker, at_s = threading.get_ident(), time.monotonic()
        with self.mutex:
            before, since = self.now.pop(worker, ("", at_s))
            if before:
                self.seconds[before] += at_s - since
            if state is not None:
                self.now[worker] = state, at_s

    def operate(self, entries: list[Entry]) -> None:
        """One operation of entries, and handing them on."""
        began_s, shape = time.thread_time(), self.shape
        self.enter("busy_s")
        with self.lock:
            until_s = time.thread_time() + shape.cpu * len(entries) / 1000
            while time.thread_time() < until_s:
                random.random()
            wait_s = (shape.fixed + shape.ms * len(entries)) / 1000
            if wait_s:
                time.sleep(around(wait_s, 0.2))
        with self.mutex:
            self.cpu_s += time.thread_time() - began_s
        self.enter("blocked_s")
        for entry in entries:
            if self.behind is None:
                entry.set()
            else:
                self.behind.queue.put(entry)
        with self.mutex:
            self.done, self.entries = self.done + 1, self.entries + len(entries)

    def take(self, block: bool = True) -> list[Entry]:
        """An entry, and as many more of a batch as wait. queue.Empty where none is there and it does not wait."""
        entries = [self.queue.get(block)]
        while len(entries) < self.shape.batch:
            try:
                entries.append(self.queue.get(block=False))
            except queue.Empty:
                break
        return entries

    def work(self, source: Callable[[], list[Entry]] | None = None) -> None:
        while True:
            self.enter("idle_s")
            self.operate(source() if source is not None else self.take())

    def line(self, pool: Pool | None) -> str:
        with self.mutex:
            at_s, seconds, workers = time.monotonic(), dict(self.seconds), self.shape.workers
            for state, since in self.now.values():
                seconds[state] += at_s - since
            at_work = sum(state == "busy_s" for state, _ in self.now.values())
            told = {"stage": self.shape.name, "order": self.order, "time": at_s, "waiting": self.queue.qsize()}
            told |= {"queue": self.shape.room, "current": at_work, "done": self.done, "entries": self.entries}
            told |= {"cpu_s": self.cpu_s}
        if pool is not None:
            return json.dumps(told | {"busy_s": seconds["busy_s"], "pool_idle": pool.idle})
        return json.dumps(told | {"workers": workers} | seconds)


class Pool:
    """Workers for all stages: each takes an operation of the last stage that has one and room behind it."""

    def __init__(self, stages: list[Stage], workers: int) -> None:
        self.stages, self.idle, self.mutex = stages, workers, threading.Lock()
        for _ in range(workers):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        while True:
            for stage in reversed(self.stages):
                if stage.behind is not None and stage.behind.queue.full():
                    continue
                try:
                    entries = stage.take(block=False)
                except queue.Empty:
                    continue
                self.busy(-1)
                stage.operate(entries)
                stage.enter(None)
                self.busy(1)
                break
            else:
                time.sleep(0.002)

    def busy(self, change: int) -> None:
        with self.mutex:
            self.idle += change


def built(shapes: list[Shape]) -> list[Stage]:
    locks = {each.lock: threading.Lock() for each in shapes if each.lock}
    stages = [Stage(each, order, locks.get(each.lock, nullcontext())) for order, each in enumerate(shapes)]
    for stage, behind in itertools.pairwise(stages):
        stage.behind = behind
    return stages


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", action="append", type=shape, required=True)
    parser.add_argument("--port", type=int)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--pool", type=int)
    given = parser.parse_args()
    stages = built(given.stage)
    first, fed = stages[0], given.port is not None or given.rate is not None or given.pool is not None
    endless = None if fed else lambda: [Entry() for _ in range(first.shape.batch)]
    if given.pool is None:
        for stage in stages:
            for _ in range(stage.shape.workers):
                source = endless if stage is first else None
                threading.Thread(target=stage.work, args=(source,), daemon=True).start()
    pool = Pool(stages, given.pool) if given.pool is not None else None

    def tell() -> None:
        while True:
            time.sleep(EVERY_S)
            print("\n".join(stage.line(pool) for stage in stages), flush=True)

    threading.Thread(target=tell, daemon=True).start()

    def work(path: str) -> Answer:
        entry = Entry()
        first.queue.put(entry)
        entry.wait()
        return 200, b"ok"

    if given.port is not None:
        knobs: dict[str, object] = {f"workers_{one.shape.name.lower()}": one.shape.workers for one in stages}
        serve(given.port, work, knobs | {f"batch_{one.shape.name.lower()}": one.shape.batch for one in stages})
    until_s = time.monotonic() + given.seconds
    due_s = time.monotonic()
    while fed and time.monotonic() < until_s:
        first.queue.put(Entry())
        if given.rate is not None:
            due_s += random.expovariate(given.rate)
            time.sleep(max(0.0, due_s - time.monotonic()))
    time.sleep(max(0.0, until_s - time.monotonic()))


if __name__ == "__main__":
    main()
