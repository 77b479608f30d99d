"""A machine on which a group's disk writes are not counted: nothing is ruled out by that 0, and the report says so.
From a recorded window."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loadframe.analysis.window import Summary, summarise
from loadframe.bench.evaluation import Evaluated, derived, evaluate
from loadframe.bench.loading import Loaded
from loadframe.experiments.writing import quality_from
from loadframe.model import CounterSpec, Step
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import SERVICE_NOTE
from loadframe.reporting import quality_words
from loadframe.study import Study
from loadframe.workloads.request_log import Requests
from simulated_study import examined, queue

StepMaker = Callable[..., Step]
RECORDED = json.loads((Path(__file__).parent.parent / "data/recorded/uncounted-group.json").read_text())
FACTS = Facts(**RECORDED["facts"])


def ticks(edit: Callable[[str, str], str] = lambda source, said: said) -> list[Tick]:
    return [
        Tick(one["at_s"], 0.0, {source: edit(source, said).encode() for source, said in one["entries"].items()}, FACTS)
        for one in RECORDED["ticks"]
    ]


def requests(begin_s: float, end_s: float) -> Requests:
    """Two workers, one of which has the lock, the other waits for it."""
    count = int(RECORDED["throughput"] * (end_s - begin_s))
    each_ms = 2000 * (end_s - begin_s) / count
    none = np.zeros(count, np.uint32)
    return Requests(
        end_s=np.linspace(begin_s, end_s, count),
        latency_ms=np.full(count, each_ms, np.float32),
        waiting_ms=np.full(count, each_ms / 2, np.float32),
        operation=none,
        outcome=none,
    )


def summary(begin_s: float, end_s: float) -> Summary:
    """Of these requests."""
    asked = requests(begin_s, end_s)
    found = summarise(
        *(asked.end_s, asked.latency_ms, asked.waiting_ms, asked.operation, asked.outcome),
        operations=("submit",),
        judged=("submit",),
        planned_s=None,
        floor_s=0.0,
        fixed_warmup_s=0.0,
    )
    return replace(found, window_start_s=begin_s, window_end_s=end_s)


def evaluated(study: Study, recording: list[Tick], *, work: str = "requests") -> Evaluated:
    specs = (CounterSpec("questions", "mariadb.questions", cumulative=True),)
    rig: Any = SimpleNamespace(target=SimpleNamespace(embedded=True), counter_specs=specs)
    window = recording[0].monotonic_s, recording[-1].monotonic_s
    loaded = Loaded(requests(*window), summary(*window), None, None, False)
    return evaluate(loaded, recording, study, rig, one_lock=True, work=work)


@pytest.fixture
def study() -> Study:
    return queue([1, 2, 4])


def test_what_a_group_does_not_count_is_unknown_in_the_step_not_0(study: Study) -> None:
    seen = evaluated(study, ticks())
    assert [one.counter for one in seen.blind] == ["target.cage.write_bytes"]
    assert not {"target.cage.write_bytes", "target.cage.writes"} & seen.metrics.keys()
    assert seen.metrics["target.io.write_bytes"] > 30e6
    assert seen.metrics["system.disk.flushes_per_request"] > 3


def test_a_disk_whose_counters_stand_still_gives_no_0_either(study: Study) -> None:
    """As bind-mounted over /proc/diskstats in a container; here the group counts."""
    still = RECORDED["ticks"][0]["entries"]["system:/proc/diskstats"]
    written = iter((0, 40_000_000))

    def edit(source: str, said: str) -> str:
        if source.endswith("io_service_bytes"):
            return f"254:0 Write {next(written)}\n"
        return still if source == "system:/proc/diskstats" else said

    seen = evaluated(study, ticks(edit))
    assert [one.counter for one in seen.blind] == ["system.disk.write_bytes"]
    assert not [name for name in seen.metrics if name.startswith("system.disk.")]


@pytest.mark.parametrize(("work", "blind"), [("requests", {"mariadb.questions"}), ("entries", set())])
def test_statements_are_fewer_than_entries_where_one_statement_is_of_many(
    study: Study, work: str, blind: set[str]
) -> None:
    """A pipeline writes a batch with one statement: the server counts 1 a second, the driver more than a hundred."""
    recording = [
        replace(one, entries={**one.entries, SERVICE_NOTE: f'{{"questions": {one.monotonic_s}}}'.encode()})
        for one in ticks()
    ]
    seen = evaluated(study, recording, work=work)
    assert {one.counter for one in seen.blind} == {"target.cage.write_bytes", *blind}
    assert ("mariadb.questions" in seen.metrics) is not bool(blind)


def test_processes_that_were_not_followed_leave_the_studys_share_unknown(study: Study) -> None:
    def edit(source: str, said: str) -> str:
        return (
            RECORDED["ticks"][0]["entries"].get(source, said) if ":/proc/" in source and "target:" in source else said
        )

    def idle(source: str, said: str) -> str:
        return "0\n" if source.endswith(":cpu") else edit(source, said)

    seen = evaluated(study, ticks(idle))
    assert "target.cpu.cores" in {one.counter for one in seen.blind}
    assert not {"target.cpu.cores", "target.saturation", "system.cpu.own", "system.cpu.foreign"} & seen.metrics.keys()


@pytest.mark.parametrize(
    ("waits", "embedded", "wanted"),
    [
        ({"target.cpu.run_delay": 0.9}, True, 0.9),
        ({"target.cpu.run_delay": 0.9, "driver.cpu.run_delay": 0.3}, True, 0.9),
        ({"target.cpu.run_delay": 0.6, "driver.cpu.run_delay": 0.3}, False, 0.9),
        ({}, True, None),
    ],
)
def test_what_waits_in_line_does_not_hide_that_who_is_at_work_has_no_cpu(
    study: Study, waits: dict[str, float], embedded: bool, wanted: float | None
) -> None:
    """Two workers, of which one waits for the lock all the time: one request is at work."""
    found = derived(waits, summary(0.0, 1.0), study, embedded=embedded, one_lock=True)
    assert found.get("workload.cpu_wait") == (None if wanted is None else pytest.approx(wanted, rel=0.02))


@pytest.mark.parametrize(
    ("throttled", "wanted"),
    [({}, 1.2), ({"target.cage.cpu.throttled_share": 1.0}, 0.2), ({"driver.cage.cpu.throttled_share": 0.5}, 1.1)],
)
def test_what_its_own_quota_keeps_waiting_does_not_wait_for_the_cpus_of_others(
    study: Study, throttled: dict[str, float], wanted: float
) -> None:
    waits = {"target.cpu.run_delay": 1.0, "driver.cpu.run_delay": 0.2, **throttled}
    found = derived(waits, summary(0.0, 1.0), study, embedded=False, one_lock=False)
    free = derived({**waits, **dict.fromkeys(throttled, 0.0)}, summary(0.0, 1.0), study, embedded=False, one_lock=False)
    assert found["workload.cpu_wait"] / free["workload.cpu_wait"] == pytest.approx(wanted / 1.2)


@pytest.mark.parametrize(
    ("limits", "wanted"), [((2.0, 2.0), 0.5), ((1.0, 2.0), 0.98), ((2.0, 1.0), 0.98), ((2.0, None), 0.98)]
)
def test_of_some_cpus_none_is_busier_than_the_busiest(
    study: Study, limits: tuple[float | None, ...], wanted: float
) -> None:
    machine = {"system.cpu.count": 2.0, "system.cpu.utilization": 0.5, "system.cpu.busiest": 0.98}
    named = zip(("target.cpu.limit", "driver.cpu.limit"), limits, strict=True)
    asked = {**machine, "target.cpu.run_delay": 0.1, **{name: each for name, each in named if each is not None}}
    found = derived(asked, summary(0.0, 1.0), study, embedded=False, one_lock=False)
    assert found["workload.cpus_busy"] == wanted


def steps(study: Study, make_step: StepMaker) -> list[Step]:
    """The recorded window at each level, three times."""
    seen = evaluated(study, ticks())
    return [
        make_step(level, throughput, seen.metrics, block=block, blind=seen.blind)
        for block in (1, 2, 3)
        for level, throughput in ((1, 1180.0 + block), (2, 1220.0 - block), (4, 1210.0 + block))
    ]


def test_the_disk_that_every_commit_waits_for_is_not_ruled_out(study: Study, make_step: StepMaker) -> None:
    one = examined(steps(study, make_step), study)
    assert [finding.id for finding in one.findings][:2] == ["disk.fsync", "lock.writer"]
    assert "target.cage.writes" not in {item.metric for item in one.findings[0].evidence}
    assert not [out for out in one.ruled_out if "disk writes of the target" in out.because]


def test_a_counter_that_is_blind_in_half_of_the_steps_is_trusted_in_none(study: Study, make_step: StepMaker) -> None:
    """In the others it agreed by chance: nothing was written in their windows."""
    taken = [
        step if step.block < 3 else replace(step, metrics={**step.metrics, "target.cage.writes": 0.0}, blind=())
        for step in steps(study, make_step)
    ]
    one = examined(taken, study)
    assert "disk.fsync" in [finding.id for finding in one.findings]


def test_the_report_names_it_in_words(study: Study, make_step: StepMaker) -> None:
    told = [
        sentence
        for sentence in quality_words.sentences(quality_from(steps(study, make_step)))
        if "did not work" in sentence
    ]
    (sentence,) = told
    assert sentence.startswith("a counter did not work in 9 of 9 steps; it rules out and confirms nothing: ")
    assert "bytes written to the disk by the target: 0 B/s, while bytes the target wrote towards disks" in sentence
    assert quality_from([make_step(1, 1.0, {})]).blind == ()
