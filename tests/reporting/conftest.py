"""Example investigations: what a report has to carry, in the shapes in which it occurs.

The job queue's is a recorded run. The numbers of the others are made up, but in the range of what real servers gave: a
table cache of 64 with five tables per job bends between 10 and 20 jobs and halves the throughput.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from loadframe.analysis.stacks import Baseline, profile
from loadframe.experiments import writing
from loadframe.experiments.reading import conclude, open_run
from loadframe.model import (
    Change,
    Cliff,
    Curve,
    CurvePoint,
    Estimate,
    Evidence,
    Finding,
    Forecast,
    ForecastCapacity,
    ForecastPoint,
    Host,
    Investigation,
    LadderStep,
    LevelRatio,
    Limit,
    LoadInterval,
    NextLimit,
    OperationTimes,
    Outcome,
    Peak,
    Price,
    Profile,
    ProfileBaseline,
    ProfiledStep,
    ProfileKind,
    ProfilePlace,
    ProfileSource,
    Reached,
    Remedy,
    Requirement,
    ResourceForecast,
    Round,
    RuledOut,
    RunQuality,
    Saturation,
    Scalability,
    Scored,
    Stack,
    StateSummary,
    StudySummary,
    TargetState,
    Trial,
    UntriedRemedy,
    Verdict,
)
from loadframe.reporting.reports import render_page

MIB = 2.0**20
HOST = Host(
    hostname="bench-1",
    kernel="6.1.0-28-amd64",
    cpu_model="AMD EPYC 7B13",
    cpus=2,
    memory_bytes=8 * 2**30,
    virtualisation="kvm",
    facts={"governor": "not readable in this virtual machine", "huge pages": "madvise", "disk": "vda, virtio"},
)
QUALITY = RunQuality(
    steps=66,
    repeated=2,
    flags={"steal": 2, "not-settled": 1},
    recorder_cpu_share=0.0123,
    recorder_rss_bytes=14 * MIB,
    ticks=2410,
    late_ticks=3,
)
BLOCKS = 3
RECORDED = Path(__file__).parents[1] / "data/runs"


def build_footprint(
    levels: tuple[float, ...],
    throughput: Callable[[float], float],
    metrics: Mapping[str, Callable[[float], float]],
    seed: int,
) -> tuple[Mapping[str, float], ...]:
    """One row per step, with a noise of a few per cent, in a randomised order of levels per block."""
    noise = random.Random(seed)
    rows: list[Mapping[str, float]] = []
    for block in range(1, BLOCKS + 1):
        for level in noise.sample(levels, len(levels)):
            row = {"step": len(rows) + 1.0, "level": float(level), "block": float(block), "errors": 0.0}
            row |= {"throughput": throughput(level) * noise.gauss(1, 0.03), "latency_p95_ms": noise.gauss(8, 1)}
            row.update({name: metric(level) * noise.gauss(1, 0.02) for name, metric in metrics.items()})
            rows.append(row)
    return tuple(rows)


def build_points(
    levels: tuple[float, ...], throughput: Callable[[float], float], latency: Callable[[float], float]
) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(level, throughput(level), 0.97 * throughput(level), 1.03 * throughput(level), latency(level), BLOCKS)
        for level in levels
    )


# --- render farm: one finding, a chain of three links, a cliff ---

FARM_LEVELS = (5.0, 10.0, 12.0, 15.0, 20.0, 40.0, 80.0, 160.0, 320.0)


def farm_before(jobs: float) -> float:
    return 2050.0 if jobs <= 12 else 2050.0 * max(0.35, 1 - 0.12 * (jobs - 12))


def farm_after(jobs: float) -> float:
    return 2110.0 if jobs <= 160 else 1760.0


def farm_curve(treatment: str, after: bool) -> Curve:
    throughput = farm_after if after else farm_before
    return Curve(
        axis="active_jobs",
        treatment=treatment,
        points=build_points(FARM_LEVELS, throughput, lambda jobs: 4 * 2050 / throughput(jobs) * (1 + jobs / 900)),
        shape="decline" if after else "cliff",
        peak=Peak(10.0, throughput(10)),
        knee=LoadInterval(171.0, 148.0, 204.0) if after else LoadInterval(12.6, 11.8, 13.9),
        cliff=None if after else Cliff(12.0, 20.0, 0.35),
        capacity=LoadInterval(160.0, 160.0, 320.0) if after else LoadInterval(12.0, 12.0, 15.0),
        usl=Scalability(410.0, 0.02, 0.0001, (380.0, 440.0), (0.01, 0.03), (0.0, 0.0002), 99.0),
        warnings=(),
    )


def farm_limits(cache: float, exhausted: Saturation | None, open_files: float) -> tuple[Limit, ...]:
    return (
        Limit(
            "mariadb.table_open_cache",
            "server",
            cache,
            cache,
            cache,
            min(cache, 64),
            0.0,
            False,
            "SHOW GLOBAL VARIABLES",
            exhausted,
            "tables",
            ("mariadb.open_files_limit",),
            "mariadb.open_tables",
            "mariadb.table_cache_misses",
        ),
        Limit(
            "process.open_files",
            "process",
            open_files,
            None,
            open_files,
            190,
            open_files - 190,
            True,
            "/proc/PID/limits",
            Saturation(415.0, 390.0, 450.0, "extrapolated", "line"),
            "files",
            (),
            "target.open_files",
        ),
        Limit(
            "memory.available",
            "hardware",
            8 * 2.0**30,
            None,
            8 * 2.0**30,
            2 * 2.0**30,
            6 * 2.0**30,
            False,
            "/proc/meminfo",
            None,
            "bytes",
        ),
    )


FARM_RULED_OUT = (
    RuledOut("cpu.saturated", "CPUs were 41 % busy at 20 active jobs; saturation begins at 95 %"),
    RuledOut("disk.busy", "the busiest disk was busy 6 % of the time, fewer than 0.1 requests queued"),
    RuledOut("mariadb.max_connections", "9 connections at most, of 151 allowed; none was refused"),
)
FARM_EVIDENCE = (
    Evidence("mariadb.table_cache_misses", 1240.0, ">", 10.0, "level 20, blocks 1 to 3", "SHOW GLOBAL STATUS"),
    Evidence("mariadb.table_cache_overflows", 1236.0, ">", 10.0, "level 20, blocks 1 to 3", "SHOW GLOBAL STATUS"),
    Evidence("mariadb.open_tables", 64.0, ">=", 63.0, "level 15, blocks 1 to 3", "SHOW GLOBAL STATUS"),
    Evidence("target.threads.blocked", 0.4, ">", 0.1, "level 20, blocks 1 to 3", "/proc/PID/task"),
)
FARM_REMEDY = Remedy(
    id="raise-table-open-cache",
    title="Raise the table cache and what it stands on",
    addresses=("mariadb.table_open_cache",),
    changes=(
        Change("process", "RLIMIT_NOFILE", 1024, 1024, False, "two files per table: 808 are enough here"),
        Change("server", "open_files_limit", 1024, 4096, True, "the server cuts its cache to what this allows"),
        Change("server", "table_open_cache", 64, 2000, True, "320 jobs with five tables each need 1,600"),
    ),
    price=Price(memory_before_bytes=152 * MIB, memory_after_bytes=261 * MIB),
    source="MariaDB manual, optimizing table_open_cache",
)


def level_ratio(load: float, before: float, after: float) -> LevelRatio:
    ratio = after / before
    return LevelRatio(load, before, after, ratio, 0.94 * ratio, 1.06 * ratio)


def farm_trial() -> Trial:
    return Trial(
        remedy=FARM_REMEDY,
        verdict=Verdict(
            2.874,
            2.71,
            3.04,
            "better",
            5,
            "block bootstrap of the ratio of medians",
            (2.8, 2.9, 2.7, 3.0, 2.9),
            (20.0, 40.0, 80.0),
        ),
        kept=True,
        levels=tuple(level_ratio(jobs, farm_before(jobs), farm_after(jobs)) for jobs in (10.0, 20.0, 40.0, 80.0)),
        effective={"RLIMIT_NOFILE": 1024, "open_files_limit": 1024, "table_open_cache": 431},
        treatment_before="as found",
        treatment_after="table_open_cache = 2000",
        operations=(
            OperationTimes(10.0, "list", 61.0, 60.0),
            OperationTimes(80.0, "dispatch", 1.52, 0.61),
            OperationTimes(80.0, "list", 41_200.0, 12_300.0),
        ),
    )


def farm_metrics(cache: float) -> Mapping[str, Callable[[float], float]]:
    return {
        "mariadb.table_cache_misses": lambda jobs: 0.2 if 5 * jobs <= cache else 1260 * (1 - cache / (5 * jobs)),
        "mariadb.open_tables": lambda jobs: min(cache, 5 * jobs),
        "target.memory.rss": lambda jobs: (148 + 0.07 * min(5 * jobs, cache)) * MIB,
        "target.cpu.cores": lambda jobs: 0.8 + 0.3 * (5 * jobs > cache),
        "system.cpu.utilization": lambda jobs: 0.41,
        "system.paging.swap_in": lambda jobs: 0.0,
    }


def render_farm() -> Investigation:
    """Gained, with one finding confirmed, one refuted, and a setting that the server cut silently."""
    finding = Finding(
        id="mariadb.table_open_cache",
        status="confirmed",
        title="the table cache is full, and tables are opened again for every job",
        reached_at=LoadInterval(12.6, 11.8, 13.9),
        evidence=FARM_EVIDENCE,
        ruled_out=FARM_RULED_OUT,
        score=0.94,
        explanation="Each active job keeps five tables busy. Once their number passes 64, every look-up evicts a "
        "table that is needed again at once.",
    )
    refuted = Finding(
        "mariadb.table_definition_cache",
        "the table definition cache is full",
        None,
        (Evidence("mariadb.opened_table_definitions", 0.0, ">", 1.0, "level 20"),),
        0.2,
        status="refuted",
    )
    first = Round(
        1,
        "as found",
        TargetState({"table_open_cache": 64}, {"RLIMIT_NOFILE": 1024}),
        {"table_open_cache": 64, "open_files_limit": 1024},
        farm_curve("as found", after=False),
        farm_limits(64, Saturation(12.8, 12.4, 13.1, "measured", "line"), 1024),
        (finding, refuted),
        (farm_trial(),),
        (),
        (),
        build_footprint(FARM_LEVELS, farm_before, farm_metrics(64), 1),
    )
    second = Round(
        2,
        "table_open_cache = 2000",
        TargetState({"table_open_cache": 2000}, {"RLIMIT_NOFILE": 1024}),
        {"table_open_cache": 431},
        farm_curve("table_open_cache = 2000", after=True),
        farm_limits(431, Saturation(86.0, 84.0, 89.0, "measured", "line"), 1024),
        (),
        (),
        (
            UntriedRemedy(
                replace(
                    FARM_REMEDY,
                    id="raise-hard-limit",
                    title="Raise the user's hard limit of open files",
                    changes=(Change("host", "nofile (hard)", 1024, 20000),),
                    price=Price(),
                ),
                "the study does not allow changes of the host",
            ),
        ),
        ("table_open_cache: 2000 was asked for, the server uses 431, because it may open only 1,024 files",),
        build_footprint(FARM_LEVELS, farm_after, farm_metrics(431), 2),
    )
    return Investigation(
        run="runs/20261121T184200Z-render-farm",
        report="runs/20261121T184200Z-render-farm/report.html",
        started_at="2026-11-21T18:42:00Z",
        seconds=113.4,
        study=StudySummary(
            "render-farm",
            "Why does submitting a job stall once many jobs are active?",
            "mariadb",
            "10.11.14",
            "render-farm",
            "active_jobs",
            "active jobs",
            FARM_LEVELS,
            "throughput, with latency p95 within 50 ms",
            "keep",
            {"target": "open files 1,024"},
            "A farm manager keeps five tables per job. Submitting took half a second, "
            "until one evening it took minutes.",
        ),
        host=HOST,
        rounds=(first, second),
        before=StateSummary(Peak(10.0, 2050.0), LoadInterval(12.6, 11.8, 13.9)),
        after=StateSummary(Peak(10.0, 2110.0), LoadInterval(171.0, 148.0, 204.0)),
        ladder=(LadderStep("raise-table-open-cache", 2.874, 2.71, 3.04, 1.0),),
        next_limit=NextLimit(
            "process.open_files",
            415.0,
            "the server runs out of open files",
            "190 of 1,024 are in use at 320 active jobs, and their number grows with the jobs",
        ),
        outcome=Outcome("gained", "One remedy kept; the next round found nothing more that could be changed."),
        quality=QUALITY,
        warnings=("latencies are those of a closed loop: a stall hides the requests that would have come meanwhile",),
        variants=tuple(
            replace(one, to_copy=("[mariadbd]", "table_open_cache = 2000"))
            for one in writing.variants_of((first, second), (), None)
        ),
    )


# --- job queue: a recorded run, without its profiles: gained twice, the second time for durability ---


@cache
def job_queue() -> Investigation:
    """What `loadframe case run job-queue --quick` left behind on a small machine."""
    found = conclude(open_run(RECORDED / "job-queue")).answer
    assert isinstance(found, Investigation)
    return found


# --- profiles: a file system that costs more past the bend ---

BELOW = (
    Stack(("mariadbd", "do_command", "MYSQLparse"), 300),
    Stack(("mariadbd", "do_command", "open_table", "path_openat_[k]"), 30),
)
PAST = (
    Stack(("mariadbd", "do_command", "MYSQLparse"), 310),
    Stack(("mariadbd", "do_command", "open_table", "path_openat_[k]"), 290),
    Stack(("mariadbd", "[mariadbd]"), 60),
)
STATES = (
    Stack(("mariadbd", "[running or runnable]"), 200),
    Stack(("mariadbd", "[sleeping]", "futex_do_wait_[k]", "[futex: lock]"), 100),
)
LACKING = Requirement("profiles", "functions of the kernel", None, "sysctl kernel.perf_event_paranoid=1 (it is 2)")


def build_profile(
    kind: ProfileKind, place: ProfilePlace, level: float, stacks: tuple[Stack, ...], *, treatment: str = "as found"
) -> Profile:
    below = Baseline(BELOW, 1e-6, ProfileBaseline("below", treatment, 10.0))
    source = ProfileSource(kind, "target", "", 0, 500.0 if kind == "cpu" else 100.0, 2.0)
    step = ProfiledStep(place, treatment, level, 2.0, 2000, 1000.0, (source,))
    found = profile(stacks, source, step, below if (kind, place) == ("cpu", "past") else None)
    assert found is not None
    return found


def profiled_farm() -> Investigation:
    """The farm with four profiles of its first state, sampled where perf may not see everything."""
    farm = render_farm()
    first = farm.rounds[0].treatment
    return replace(
        farm,
        profiles=(
            build_profile("cpu", "below", 10.0, BELOW, treatment=first),
            build_profile("threads", "below", 10.0, STATES, treatment=first),
            build_profile("cpu", "past", 40.0, PAST, treatment=first),
            build_profile("threads", "past", 40.0, STATES, treatment=first),
        ),
        profile_missing=(LACKING,),
    )


# --- what did not gain ---


def cpu_saturated() -> Investigation:
    """Nothing to change: the CPUs are busy, and the tool says so."""
    farm = render_farm()
    round_ = replace(
        farm.rounds[0],
        curve=replace(
            farm_curve("as found", after=True), shape="plateau", knee=LoadInterval(2.1, 1.8, 2.4), cliff=None
        ),
        findings=(
            Finding(
                "cpu.saturated",
                "the CPUs are saturated",
                LoadInterval(2.1, 1.8, 2.4),
                (Evidence("system.cpu.utilization", 0.985, ">=", 0.95, "level 20, blocks 1 to 3"),),
                0.97,
            ),
        ),
        tried=(),
        clamped=(),
        untried=(),
        limits=tuple(replace(limit, exhausted_at=None) for limit in farm.rounds[0].limits),
    )
    return replace(
        farm,
        rounds=(round_,),
        variants=(),
        ladder=(),
        next_limit=None,
        warnings=(),
        after=None,
        before=StateSummary(Peak(10.0, 2110.0), LoadInterval(2.1, 1.8, 2.4)),
        outcome=Outcome("cpu-saturated", "The CPUs were 98 % busy; no setting of the target gives more of them."),
    )


def interrupted() -> Investigation:
    """Ctrl-C in the first round: a curve and a suspicion, nothing proved."""
    farm = render_farm()
    findings = tuple(replace(finding, status="suspected") for finding in farm.rounds[0].findings[:1])
    return replace(
        farm,
        rounds=(replace(farm.rounds[0], tried=(), findings=findings),),
        variants=(),
        ladder=(),
        after=None,
        next_limit=None,
        outcome=Outcome("interrupted", "Stopped by the user."),
        quality=replace(QUALITY, steps=27, flags={}, repeated=0),
    )


def bare() -> Investigation:
    """Interrupted before the first curve was whole: every part that may be missing is missing."""
    farm = interrupted()
    return replace(
        farm,
        rounds=(),
        before=None,
        after=None,
        warnings=(),
        study=replace(farm.study, story="", cage={}, axis_unit="", target_version=""),
        host=replace(HOST, facts={}),
        quality=replace(farm.quality, steps=3, ticks=0, late_ticks=0, recorder_cpu_share=0.0),
    )


def ragged() -> Investigation:
    """Gained without anything beyond: no knee, no next limit, no intervals, and numbers that are not known."""
    farm = render_farm()
    unknown = float("nan")
    points = tuple(
        replace(point, throughput_low=unknown, throughput_high=unknown, latency_p95_ms=None)
        for point in farm.rounds[0].curve.points
    )
    curve = replace(farm.rounds[0].curve, points=points, shape="linear", knee=None, cliff=None, capacity=None, usl=None)
    finding = replace(
        farm.rounds[0].findings[0],
        reached_at=None,
        ruled_out=(),
        explanation="",
        evidence=(Evidence("mariadb.open_tables", 64.0, "rises", unknown, ""),),
    )
    remedy = replace(FARM_REMEDY, price=Price(), changes=(Change("server", "table_open_cache", None, 2000),))
    trial = replace(
        farm_trial(), remedy=remedy, effective={}, levels=(), verdict=replace(farm_trial().verdict, levels=())
    )
    limits = tuple(
        replace(limit, ceiling=float("inf"), headroom=float("inf"), exhausted_at=None)
        for limit in farm.rounds[0].limits
    )
    return replace(
        farm,
        rounds=(
            replace(farm.rounds[0], curve=curve, findings=(finding,), tried=(trial,), limits=limits, footprint=()),
        ),
        before=StateSummary(Peak(10.0, 2050.0), None),
        after=StateSummary(Peak(10.0, 2110.0), None),
        next_limit=None,
        ladder=(),
        warnings=(),
    )


INVESTIGATIONS: Mapping[str, Callable[[], Investigation]] = {
    "render_farm": render_farm,
    "profiled_farm": profiled_farm,
    "job_queue": job_queue,
    "cpu_saturated": cpu_saturated,
    "interrupted": interrupted,
    "bare": bare,
    "ragged": ragged,
}


@pytest.fixture(scope="session", params=INVESTIGATIONS)
def investigation(request: pytest.FixtureRequest) -> Investigation:
    """Each example in turn."""
    return INVESTIGATIONS[request.param]()


@pytest.fixture(scope="session")
def page(investigation: Investigation) -> str:
    """Its page, rendered once: the records are frozen, and every rendering starts Vega's engine."""
    return render_page(investigation)


@pytest.fixture
def farm() -> Investigation:
    return render_farm()


@pytest.fixture
def profiled() -> Investigation:
    return profiled_farm()


@pytest.fixture
def compared() -> Investigation:
    """The profiled farm, sampled in its last state too: opening tables has vanished from it."""
    farm = profiled_farm()
    after = (Stack(("mariadbd", "do_command", "MYSQLparse"), 500), Stack(("mariadbd", "[mariadbd]"), 55))
    last = build_profile("cpu", "past", 40.0, after, treatment=farm.rounds[1].treatment)
    return replace(farm, profiles=(*farm.profiles, last))


@pytest.fixture
def foretold() -> Investigation:
    """The farm, as if it had been forecast from its low levels, with a target in pieces."""
    found = render_farm()
    points = tuple(
        ForecastPoint(load, Estimate(value, value - 100, value + 100), None) for load, value in ((15, 2000), (20, 2100))
    )
    saturation = ResourceForecast("loader.cpu", 0.005, 0.004, 0.006, 1.0, 0.22, Estimate(1, 1, 1), Estimate(14, 12, 17))
    forecast = Forecast(
        "runs/farm",
        "active_jobs",
        "closed",
        (5, 10),
        at=points,
        capacity=ForecastCapacity(Estimate(2050, 1900, 2200), Estimate(14, 12, 17), "loader.cpu"),
        saturation=(saturation,),
        scored=(Scored(15, 2000, 1900, 2100, 1950, True), Scored(20, 2100, 2000, 2200, 800, False)),
        notes=("A request needs more of loader.cpu the higher the load is.",),
        reached=Reached(12, 2050, "loader.cpu", 0.97, saturated_at=12.5, load_inside=True, throughput_inside=True),
    )
    first = found.rounds[0]
    parted = {"loader.cpu.cores": 0.3, "shard1.cpu.cores": 0.1, "driver.cpu.cores": 0.2}
    footprint = tuple({**row, **parted} for row in first.footprint)
    return replace(found, forecast=forecast, rounds=(replace(first, footprint=footprint), *found.rounds[1:]))


@pytest.fixture
def queue() -> Investigation:
    return job_queue()


@pytest.fixture
def examples() -> dict[str, Investigation]:
    return {name: build() for name, build in INVESTIGATIONS.items()}
