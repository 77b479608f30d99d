"""The ledger now: of ourselves, of a watched thing with a clock of its own, and of a real private server."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from loadframe.errors import TargetError
from loadframe.experiments import limits_now
from loadframe.experiments.limits_now import Moment, Subject, Watch, ledger_of, limits, observe, urgency
from loadframe.model import LedgerNow, Limit, Saturation
from loadframe.progress import Silent
from loadframe.recording.snapshot import Place, Snapshot
from loadframe.study import load


def limit(ledger: LedgerNow, name: str) -> Limit:
    return next(one for one in ledger.limits if one.id == name)


# --- real ---


@pytest.fixture
def open_to_900() -> Iterator[None]:
    """900 of 1,024 files open in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    opened: list[int] = []
    try:
        while len(os.listdir("/proc/self/fd")) - 1 < 900:  # noqa: PTH208 - the listing itself is one of them
            opened.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.long
@pytest.mark.usefixtures("open_to_900")
def test_our_own_open_files_are_near_their_limit() -> None:
    ledger = limits(pid=os.getpid())
    files = limit(ledger, "process.open_files")
    assert (files.ceiling, files.status) == (1024, "near")
    assert 900 <= files.use <= 910
    assert files.chain[0] == "process.open_files_hard"
    known = {one.id for one in (*ledger.limits, *ledger.unread)}
    assert {"process.hot_thread", "cgroup.memory", "kernel.pid_max", "network.time_wait", "cpu.frequency"} <= known
    assert not [name for name in known if name.startswith("mariadb.")]
    assert all(one.reason for one in ledger.unread)


def test_a_process_that_is_not_there_is_refused() -> None:
    for pid in (0, -1, 2**22 + 1):
        with pytest.raises(TargetError, match="no process"):
            limits(pid=pid)


STUDY = """
[study]
name = "limits"
question = "?"
[target]
kind = "{kind}"
[target.settings]
{settings}
{cage}
[workload]
kind = "{workload}"
[load]
axis = "{axis}"
levels = [1]
"""


@pytest.mark.long
@pytest.mark.server
def test_a_private_server_with_what_it_was_asked_and_what_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    cage = "[cage]\nopen_files = 4096"
    settings = "table_open_cache = 12000\nmax_connections = 300"
    path.write_text(
        STUDY.format(kind="mariadb", settings=settings, cage=cage, workload="render-farm", axis="active_jobs")
    )
    ledger = limits(study=load(path))
    cache = limit(ledger, "mariadb.table_open_cache")
    assert cache.configured == 12000
    assert cache.ceiling == cache.effective < 4096
    assert not cache.loud
    assert any("12000 was asked for" in cut for cut in ledger.clamped)
    assert limit(ledger, "mariadb.files_wanted").use == 10 + 300 + 2 * 12000
    assert limit(ledger, "process.open_files").configured == 4096
    connections = limit(ledger, "mariadb.max_connections")
    assert (connections.ceiling, connections.use) == (300, connections.use)
    assert connections.use < 10, "what was tried for the memory came after the readings"
    memory = limit(ledger, "mariadb.memory_budget")
    assert 2**26 < memory.use < memory.ceiling
    server = [one for one in ledger.unread if one.id.startswith("mariadb.")]
    assert server == []


@pytest.mark.long
@pytest.mark.server
def test_a_private_postgres_with_all_its_processes(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    cage = "[cage.shard]\nopen_files = 4096"
    settings = 'shared_buffers = "32MB"\nmax_connections = 60'
    text = STUDY.format(kind="postgres", settings=settings, cage=cage, workload="oltp", axis="concurrency")
    path.write_text(text.replace("[target.settings]", "shards = 3\n[target.settings]"))
    ledger = limits(study=load(path))
    assert "one of its 3 shards" in ledger.subject
    connections = limit(ledger, "postgres.max_connections")
    assert (connections.ceiling, connections.configured, connections.effective) == (57, 60, 60)
    assert connections.use < 5
    assert limit(ledger, "process.open_files").configured == 4096
    memory = limit(ledger, "postgres.memory_budget")
    assert 40 << 20 < memory.use < memory.ceiling
    promised = limit(ledger, "postgres.memory_promised")
    assert promised.use == (32 << 20) + 60 * (4 << 20) * 1.5 + 3 * (64 << 20)
    assert limit(ledger, "process.hot_thread").use <= limit(ledger, "process.cpus").use + 1e-9
    assert [one for one in ledger.unread if one.id.startswith("postgres.")] == []


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("nginx", "nginx.worker_connections"),
        ("nginx-cache", "nginx.worker_connections"),
        ("varnish", "varnish.threads"),
    ],
)
def test_a_private_web_server_or_cache_without_any_account(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(kind=kind, settings="", cage="", workload="http", axis="concurrency"))
    ledger = limits(study=load(path))
    assert limit(ledger, name).use < limit(ledger, name).ceiling
    assert limit(ledger, "process.open_files").use > 0


def test_an_embedded_target_says_why_it_has_no_process(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(kind="sqlite", settings="", cage="", workload="job-queue", axis="concurrency"))
    unread = {one.id: one.reason for one in limits(study=load(path)).unread}
    assert "clients' processes" in unread["process.open_files"]
    assert "loadframe measure" in unread["lock.writer"]


# --- watching, with a clock of our own ---


class Watched:
    """A process whose open files grow by 2 a second, under a limit of 1,024."""

    def __init__(self, *, ends_at_s: float = 1e9) -> None:
        self.now_s, self.ends_at_s = 0.0, ends_at_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def look(self) -> Moment:
        limits_text = (
            b"Limit                     Soft Limit           Hard Limit           Units     \n"
            b"Max open files            1024                 4096                 files     \n"
        )
        open_files = {"fd": b"%d\n" % (100 + 2 * self.now_s), "limits": limits_text}
        contents = {"proc/{pid}/limits": limits_text, "proc/{pid}/fd": open_files}
        return Moment(Snapshot(self.now_s, contents), {})

    def watch(self, over_s: float) -> Watch:
        return observe(
            self.look,
            over_s,
            still_there=lambda: self.now_s < self.ends_at_s,
            progress=Silent(),
            sleep=self.sleep,
            clock=lambda: self.now_s,
        )


PROCESS = Subject("a process", Place(pid=42), frozenset({"process"}))


def test_what_runs_out_first_is_first_and_has_its_date() -> None:
    ledger = ledger_of(PROCESS, Watched().watch(120), forecast=True)
    assert (ledger.watched_s, ledger.readings) == (120, 61)
    first, second = ledger.limits[:2]
    assert first.id == "process.open_files"
    assert first.exhausted_at is not None
    assert first.exhausted_at.load == pytest.approx((1024 - 340) / 2, rel=0.02)
    assert first.exhausted_at.low <= 342 <= first.exhausted_at.high
    assert second.id == "process.open_files_hard"


def test_what_is_full_and_costs_nothing_comes_after_what_runs_out() -> None:
    shown = Limit("x", "server", 64, None, 64, 64, 0, loud=False, source="", exhausted_at=None)
    at_once = Saturation(0, 0, 0)
    warm = replace(shown, id="warm", status="reached", harm=0.0, exhausted_at=at_once)
    thrashing = replace(shown, id="thrashing", status="reached", harm=7.0, exhausted_at=at_once)
    unread = replace(shown, id="unread", status="reached", use=63.0)
    runs_out = replace(shown, id="runs out", use=20.0, status="free", exhausted_at=Saturation(60, 50, 70))
    near = replace(shown, id="near", use=60.0, status="near")
    free = replace(shown, id="free", use=1.0, status="free")
    ranked = sorted((free, warm, near, runs_out, unread, thrashing), key=urgency)
    assert [one.id for one in ranked] == ["thrashing", "unread", "runs out", "near", "warm", "free"]


def test_without_a_watch_nothing_is_foretold() -> None:
    ledger = ledger_of(PROCESS, Watched().watch(1.0), forecast=False)
    assert all(one.exhausted_at is None for one in ledger.limits)


def test_a_process_that_ends_is_told_with_what_was_seen() -> None:
    ledger = ledger_of(PROCESS, Watched(ends_at_s=55).watch(120), forecast=True)
    assert ledger.warnings == ("the watched process ended after 54 s",)
    assert limit(ledger, "process.open_files").use == 208


def test_a_server_that_dies_is_told_with_what_was_seen_and_one_that_hangs_is_an_error() -> None:
    def refuse_after(last_s: float, watched: Watched) -> Moment:
        if watched.now_s > last_s:
            raise TargetError("does not answer")
        return watched.look()

    for ends_at_s, ended in ((55.0, True), (1e9, False)):
        watched = Watched(ends_at_s=ends_at_s)
        look = partial(refuse_after, 55.0, watched)
        there = partial(lambda one: one.now_s < one.ends_at_s, watched)
        arguments = {"progress": Silent(), "sleep": watched.sleep, "clock": partial(getattr, watched, "now_s")}
        if ended:
            assert observe(look, 120, still_there=there, **arguments).ended
        else:
            with pytest.raises(TargetError, match="does not answer"):
                observe(look, 120, still_there=there, **arguments)


def test_a_process_that_ends_at_once_is_refused() -> None:
    with pytest.raises(TargetError, match="ended before"):
        Watched(ends_at_s=0.5).watch(10)


@pytest.mark.parametrize(("over_s", "readings"), [(1.0, 2), (5.0, 6), (600.0, 61), (7200.0, 241)])
def test_a_watch_takes_a_bounded_number_of_readings(over_s: float, readings: int) -> None:
    watch = Watched().watch(over_s)
    assert len(watch.intervals) + 1 == readings
    assert watch.watched_s == pytest.approx(over_s)


class Remote:
    """A server on another machine."""

    kind = "mariadb"
    counter_specs = ()


def test_of_a_server_elsewhere_this_machine_says_nothing() -> None:
    subject = Subject("far away", Place(no_process="far"), frozenset({"process", "mariadb"}), Remote(), local=False)  # type: ignore[arg-type]
    ledger = ledger_of(subject, Watched().watch(1.0), forecast=False)
    reasons = {one.id: one.reason for one in ledger.unread}
    assert ledger.limits == ()
    assert reasons["process.open_files"] == reasons["kernel.pid_max"] == limits_now.ELSEWHERE
    assert reasons["mariadb.memory_budget"] == reasons["cpu.frequency"] == limits_now.ELSEWHERE


def test_a_limit_that_the_server_worked_out_was_not_asked_for() -> None:
    effective = {"open_files_limit": 32000, "max_connections": 151}
    subject = Subject("a server", kinds=frozenset({"mariadb"}), server=Remote(), effective=effective)  # type: ignore[arg-type]
    asked = limits_now._asked(subject)
    assert (asked["mariadb.open_files_limit.asked"], asked["mariadb.max_connections.asked"]) == (0, 151)
    asked = limits_now._asked(replace(subject, configured={"open_files_limit": 65535}))
    assert asked["mariadb.open_files_limit.asked"] == 65535


MEGABYTE = 2.0**20
MOST = {"mariadb.max_connections": 50.0, "target.memory.allowed": 1000 * MEGABYTE}


def test_memory_per_connection_is_known_from_connections_that_vary() -> None:
    watch = Watched().watch(60)
    watch.intervals = [
        (at_s, {"mariadb.connections": 5 + at % 4, "target.memory.rss": MEGABYTE * (110 + 2 * (at % 4))})
        for at, (at_s, _) in enumerate(watch.intervals)
    ]
    subject = Subject("a server", Place(pid=42), frozenset({"process", "mariadb"}), Remote())  # type: ignore[arg-type]
    ledger = ledger_of(subject, watch, forecast=False, stages=MOST)
    (budget,) = (limit for limit in ledger.limits if limit.id == "mariadb.memory_budget")
    assert budget.use == pytest.approx(200 * MEGABYTE, rel=0.01)


def test_memory_per_connection_needs_connections_that_vary() -> None:
    watch = Watched().watch(60)
    steady = {"mariadb.connections": 5.0, "target.memory.rss": 110 * MEGABYTE}
    watch.intervals = [(at_s, steady) for at_s, _ in watch.intervals]
    for moment in (watch.first, watch.last):
        moment.snapshot.contents["proc/{pid}/status"] = b"VmRSS:\t112640 kB\n"  # type: ignore[index]
    subject = Subject("a server", Place(pid=42), frozenset({"process", "mariadb"}), Remote())  # type: ignore[arg-type]
    ledger = ledger_of(subject, watch, forecast=False, stages=MOST)
    (budget,) = (limit for limit in ledger.unread if limit.id == "mariadb.memory_budget")
    assert "hardly changed" in budget.reason
