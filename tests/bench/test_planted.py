"""The planted causes are studies that can be carried out, and their score says what was right."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import planted
import planted_rivals
from hosts_investigations import Asked
from loadframe.bench.checking import check_study
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.remedies import BUILDERS, Situation, propose
from loadframe.diagnosis.remedies.declared import NAMED
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.errors import CageError, MissingTool
from loadframe.kinds import registry as targets
from loadframe.ledger.rules import RULES
from loadframe.model import Finding, TargetState
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe_fleet.on_hosts import Done, Work

PLANTED = Path(planted.__file__).parent / "planted"
FILES = sorted(PLANTED.glob("*.toml"))
ONES = [planted.read(path) for path in FILES]
KNOWN = {rule.id for rule in RULES} | {signature.id for signature in SIGNATURES} | set(NAMED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_planted_cause_is_a_study_and_names_findings_that_exist(path: Path) -> None:
    one = planted.read(path)
    assert one.study.study.name == one.name
    declared = {f"service.{limit.name}" for limit in one.study.target.limit}
    stages = {word.partition(",")[0] for word in one.study.target.command if "workers=" in word}
    assert set(one.first) <= KNOWN | declared | {f"pipeline.{stage}" for stage in stages}
    assert bool(one.first) or one.cause.startswith("nothing")
    if one.first and one.status == "confirmed" and not one.sham:
        lifts = one.study.target.setting.keys() & set(one.settings)
        known = lifts or any(finding in (*BUILDERS, *GROWTH) for finding in one.first)
        assert known, "only a remedy can confirm, and of a growth a restart"
    targets.of_study(one.study).check_settings({**one.study.target.settings, **one.sham})
    try:
        check_study(one.study)
    except (CageError, MissingTool) as missing:
        pytest.skip(str(missing))


def test_there_are_enough_of_them_of_every_kind() -> None:
    kinds = Counter(one.kind for one in ONES)
    assert sum(kinds.values()) >= 36
    assert kinds["cause"] >= 24
    assert kinds["pair"] >= 4
    assert kinds["nothing"] >= 8
    assert kinds["sham"] >= 4
    assert kinds["stranger"] >= 2
    servers = {one.study.target.kind for one in ONES}
    assert servers >= {"sqlite", "mariadb", "postgres", "nginx", "varnish", "squid", "bulk-loader", "service"}
    services = [one for one in ONES if one.study.target.kind == "service"]
    assert len(services) >= 12
    assert sum(bool(one.decoys) for one in services) >= 12


def test_they_are_studies_of_different_things() -> None:
    asked = [
        json.dumps([{**one.study.resolved(), "study": {}}, one.strangers, one.sham], sort_keys=True, default=str)
        for one in ONES
    ]
    assert len(set(asked)) == len(asked)


def suspected(cause: str) -> Finding:
    return Finding(cause, cause, None, (), 0.6)


def test_in_a_sham_every_remedy_is_a_start_without_the_change() -> None:
    sham = replace(planted.read(PLANTED / "mariadb-table-cache.toml"), sham={"back_log": 70})
    situation = Situation(
        target_kind="mariadb",
        state=TargetState({}),
        effective={"table_open_cache": 64, "back_log": 80},
        demands={"mariadb.table_open_cache": 640.0},
        ceilings={"mariadb.table_open_cache": 64.0},
    )
    findings = [suspected("mariadb.table_open_cache"), suspected("lock.row")]

    def changed() -> set[tuple[str, object]]:
        return {(change.setting, change.after) for one in propose(findings, situation) for change in one.changes}

    usual = changed()
    assert ("table_open_cache", 770) in usual
    with planted.without_effect(sham):
        assert changed() == {("back_log", 70)}
        assert [one.addresses for one in propose(findings, situation)] == [("mariadb.table_open_cache",)]
    assert changed() == usual


def found(
    *statuses: tuple[str, str], gain: bool = True, flags: dict[str, int] | None = None, changed: tuple[str, ...] = ()
) -> Any:
    """An investigation with one round of these findings. changed: settings that a kept remedy has changed."""

    class Anything:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update(fields)

    findings = [Anything(id=name, status=status) for name, status in statuses]
    changes = [Anything(setting=name, needed=True) for name in changed]
    tried = [Anything(kept=True, remedy=Anything(changes=changes))] if changed else []
    return Anything(
        rounds=[Anything(findings=findings, tried=tried)],
        gain=object() if gain else None,
        quality=Anything(flags=flags or {}, steps=10),
    )


Score = Callable[..., Any]


def test_right_first_and_proved() -> None:
    cause = planted.read(PLANTED / "mariadb-cpu-quota.toml")
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "suspected")))
    assert (result.right, result.proved, result.false) == (True, True, ())
    result = planted.score(cause, found(("disk.fsync", "suspected"), ("cage.cpu_quota", "suspected"), gain=False))
    assert (result.right, result.proved, result.false) == (False, False, ())


def test_a_confirmation_of_anything_else_is_false() -> None:
    cause = planted.read(PLANTED / "mariadb-cpu-quota.toml")
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "confirmed")))
    assert result.false == ("disk.fsync",)
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "helped")))
    assert (result.proved, result.false) == (True, ())


def test_where_nothing_is_planted_nothing_may_be_confirmed_or_changed() -> None:
    nothing = planted.read(PLANTED / "nothing-sqlite.toml")
    assert planted.score(nothing, found(("lock.writer", "suspected"), gain=False)).right
    assert not planted.score(nothing, found(("lock.writer", "confirmed"))).right
    assert not planted.score(nothing, found(gain=True)).right


def test_of_two_limits_in_series_both_must_be_lifted() -> None:
    pair = planted.read(PLANTED / "mariadb-write-pair.toml")
    lifted = ("cage.writes", "confirmed"), ("cage.write_bytes", "confirmed")
    assert planted.score(pair, found(*lifted, changed=("io.wiops", "io.wbps"))).proved
    assert not planted.score(pair, found(*lifted, changed=("io.wiops",))).proved
    assert not planted.score(pair, found(*lifted)).proved


def test_in_a_sham_the_cause_that_is_there_may_not_be_confirmed_either() -> None:
    sham = replace(planted.read(PLANTED / "mariadb-table-cache.toml"), sham={"back_log": 70})
    cause = "mariadb.table_open_cache"
    for status in ("suspected", "refuted"):
        result = planted.score(sham, found((cause, status), gain=False))
        assert (result.right, result.proved, result.false) == (True, True, ())
    result = planted.score(sham, found((cause, "confirmed")))
    assert (result.right, result.proved, result.false) == (True, False, (cause,))
    result = planted.score(sham, found((cause, "helped"), gain=True))
    assert (result.right, result.proved, result.false) == (True, False, ())
    assert not planted.score(sham, found(("lock.row", "suspected"), gain=False)).right


def test_a_decoy_that_was_changed_for_good_is_a_false_confirmation() -> None:
    service = planted.read(PLANTED / "service-workers.toml")
    assert service.decoys == {"cache_mb", "idle_timeout_s"}
    confirmed = "service.parallelism", "confirmed"
    result = planted.score(service, found(confirmed, changed=("workers",)))
    assert (result.right, result.proved, result.false) == (True, True, ())
    result = planted.score(service, found(confirmed, changed=("workers", "cache_mb")))
    assert result.false == ("decoy cache_mb",)
    nothing = planted.read(PLANTED / "nothing-service.toml")
    assert planted.score(nothing, found(changed=("workers",), gain=True)).false == ("decoy workers",)


def curve(*throughputs: float) -> Any:
    """Of levels that double from 1."""
    points = [SimpleNamespace(load=2.0**power, throughput=value) for power, value in enumerate(throughputs)]
    return SimpleNamespace(points=points, treatment="as planted")


def at(level: float, busy: float) -> Any:
    """A step of the curve, with the share of the CPUs in use."""
    metrics = {"system.cpu.utilization": busy}
    return SimpleNamespace(level=level, metrics=metrics, purpose="curve", treatment="as planted")


def test_rules_of_one_line_are_right_where_they_happen_to_be() -> None:
    pool, lock, cpu, nothing = (
        planted.read(PLANTED / f"{name}.toml")
        for name in ("service-workers", "service-lock", "service-cpu", "nothing-service")
    )
    flat, linear = curve(50, 100, 101), curve(50, 100, 200)
    idle, used_up = [at(4.0, 0.1)], [at(4.0, 0.99)]
    assert planted_rivals.scored(pool, flat, idle) == {"busy": False, "a pool": True, "first knob": False}
    assert planted_rivals.scored(lock, flat, idle) == {"busy": False, "a pool": False, "first knob": True}
    assert set(planted_rivals.scored(cpu, flat, used_up).values()) == {True}
    assert set(planted_rivals.scored(pool, flat, used_up).values()) == {False}
    assert set(planted_rivals.scored(nothing, linear, idle).values()) == {True}


def counted(level: float, kind: str, **others: float) -> Any:
    """A step of the curve on an idle machine, with what a server without a limit counts, but for `others`."""
    counts = {
        "table_cache_hits": 900.0, "table_cache_misses": 100.0, "max_used_connections": 20.0, "max_connections": 151.0,
        "pool_miss_share": 0.01, "pool_pages": 8192.0, "pool_page_bytes": 16384.0, "checkpoint_max_age": 1e8,
    }  # fmt: skip
    step = at(level, 0.1)
    step.metrics |= {f"{kind}.{name}": value for name, value in {**counts, **others}.items()}
    return step


@pytest.mark.parametrize(
    ("name", "counts", "tuner"),
    [
        ("connections", {"max_used_connections": 10.0, "max_connections": 10.0}, True),
        ("table-cache", {"table_cache_hits": 100.0, "table_cache_misses": 900.0}, True),
        ("table-cache", {"table_cache_hits": 300.0, "table_cache_misses": 700.0}, False),
        ("buffer-pool", {"pool_pages": 512.0, "pool_miss_share": 0.3, "checkpoint_max_age": 8e6}, True),
        ("redo", {"checkpoint_max_age": 8e6}, True),
        ("redo", {"max_used_connections": 140.0, "checkpoint_max_age": 8e6}, False),
    ],
)
@pytest.mark.parametrize("kind", planted_rivals.FAMILY)
def test_rules_of_one_line_on_what_a_database_counts(
    kind: str, name: str, counts: dict[str, float], tuner: bool
) -> None:
    one = planted.read(PLANTED / f"{kind}-{name}.toml")
    steps = [counted(2.0, kind), counted(4.0, kind, **counts)]
    right = planted_rivals.scored(one, curve(50, 100, 101), steps)
    assert right == {"busy": False, "the pool": name == "buffer-pool", "the tuner": tuner}


def test_of_a_database_without_a_limit_no_rule_names_one_but_the_pool() -> None:
    nothing = planted.read(PLANTED / "nothing-mariadb-oltp.toml")
    right = planted_rivals.scored(nothing, curve(50, 100, 200), [counted(4.0, "mariadb")])
    assert right == {"busy": True, "the pool": False, "the tuner": True}
    assert planted_rivals.scored(nothing, curve(50, 100, 200), [at(4.0, 0.1)])["the tuner"], "what is not counted"


def test_a_disturbance_has_to_be_seen() -> None:
    stranger = planted.read(PLANTED / "mariadb-stranger.toml")
    others = ("cpu.others", "suspected")
    assert planted.score(stranger, found(others, gain=False, flags={"stranger": 9})).right
    assert not planted.score(stranger, found(others, gain=False, flags={"stranger": 2})).right
    assert not planted.score(stranger, found(("lock.row", "suspected"), others, flags={"stranger": 9})).right


FLEET = """
[fleet]
name = "laboratory"
[[host]]
name = "one"
roles = ["trial"]
worker = "one"
[[host]]
name = "two"
roles = ["trial"]
worker = "two"
"""


def test_on_the_hosts_of_a_fleet_the_score_is_told_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each on both, of which one lacks what it needs, and the other has lost its worker."""
    tmp_path.joinpath("fleet.toml").write_text(FLEET, encoding="utf-8")
    of_hosts: list[str] = []

    class Investigations:
        notes = ("The hosts take turns.",)

        def __call__(self, asked: list[Asked], run: RunFolder, progress: Silent, told: Callable[[Done], None]) -> None:
            for number, each in enumerate(asked, start=1):
                of_hosts.append(each.host)
                work = Work("investigation", number, each.study.study.name, lambda _: {})
                told(Done(work, each.host, failed=f"{each.study.study.name} cannot be carried out there"))

    @contextmanager
    def over(*_: object) -> Iterator[Investigations]:
        yield Investigations()

    monkeypatch.setattr(planted, "investigations_over", over)
    chosen = [planted.read(PLANTED / f"{name}.toml") for name in ("sqlite-fsync", "nothing-sqlite")]
    results = planted.on_hosts(tmp_path / "fleet.toml", chosen, 1, on_each=True, runs=tmp_path)
    said = capsys.readouterr().out
    assert of_hosts == ["one", "two"] * 2 and len(results) == 4 and not any(one.right for one in results)
    assert re.search(r"^nothing-sqlite +nothing-sqlite cannot be carried out there two$", said, re.MULTILINE)
    assert "The hosts take turns." in said
    assert "on host one: right first: 0 of 2 " in said and "on host two: right first: 0 of 2 " in said


def test_shams_and_strangers_are_left_out_of_a_fleet_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    investigated: list[str] = []

    def on_hosts(_: Path, chosen: list[planted.Planted], *__: object, **___: object) -> list[planted.Score]:
        investigated.extend(one.name for one in chosen)
        return [planted.Score(right=True, proved=True) for _ in chosen]

    monkeypatch.setattr(planted, "on_hosts", on_hosts)
    monkeypatch.setattr(planted.planted_programs, "build", lambda: None)
    words = ["planted.py", "--fleet", str(tmp_path), "sham-sqlite-fsync", "sqlite-stranger", "sqlite-fsync"]
    monkeypatch.setattr(sys, "argv", words)
    assert planted.main() == 0
    said = capsys.readouterr().out
    assert investigated == ["sqlite-fsync"]
    assert "left out: a sham is of the machine" in said and "left out: a stranger is of the machine" in said
