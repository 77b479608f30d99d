"""From what stages print to what is known of them in a window: shares of their workers, waits, rates."""

from __future__ import annotations

import json

import pytest

from loadframe.metrics import is_known, metric
from loadframe.model import CounterSpec
from loadframe.recording.frames import Facts, Tick
from loadframe.recording.metrics import service_metrics
from loadframe_pipelines import families

FACTS = Facts(0.1, 100, 2, 4096, 0.0, 0.0, 0.0)


def _window(readings: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    """What a window from 0 to 10 s says of one stage, S, or of a log, changes."""
    names = {name for _, counters in readings for name in counters}
    specs = [CounterSpec(name, name, families.is_cumulative(name)) for name in sorted(names)]
    ticks = [
        Tick(at_s, at_s, {"note:service": json.dumps(counters).encode()}, FACTS, sample=False)
        for at_s, counters in readings
    ]
    return service_metrics(ticks, 0.0, 10.0, specs)


def _stage(**ends: float) -> dict[str, float]:
    return {f"pipeline.S.{end}": value for end, value in ends.items()}


def test_the_seconds_of_workers_become_shares_of_them() -> None:
    first = _stage(busy_s=0, idle_s=0, blocked_s=0, workers=4, done=0, entries=0)
    last = _stage(busy_s=30, idle_s=8, blocked_s=2, workers=4, done=100, entries=1000)
    found = _window([(0.0, first), (10.0, last)])
    assert found["pipeline.S.busy"] == pytest.approx(3.0)
    assert found["pipeline.S.busy_share"] == pytest.approx(0.75)
    assert found["pipeline.S.idle_share"] == pytest.approx(0.2)
    assert found["pipeline.S.blocked_share"] == pytest.approx(0.05)
    assert "pipeline.S.server_share" not in found, "it does not tell of a server"
    assert found["pipeline.S.batch"] == pytest.approx(10)
    assert found["pipeline.S.ms_per_op"] == pytest.approx(300)
    assert found["pipeline.S.ms_per_entry"] == pytest.approx(30)
    assert found["pipeline.S.capacity"] == pytest.approx(100 / 0.75)


def test_the_share_of_a_server_is_of_the_time_at_work() -> None:
    first = _stage(busy_s=0, idle_s=0, blocked_s=0, server_s=0, workers=4, done=0)
    last = _stage(busy_s=30, idle_s=8, blocked_s=2, server_s=24, workers=4, done=100)
    assert _window([(0.0, first), (10.0, last)])["pipeline.S.server_share"] == pytest.approx(0.8)


def test_without_seconds_the_utilisation_law_has_to_do() -> None:
    """10 operations a second of 150 ms keep 1.5 workers at work."""
    found = _window(
        [(0.0, _stage(done=0, ms_per_op=150, workers=2)), (10.0, _stage(done=100, ms_per_op=150, workers=2))]
    )
    assert found["pipeline.S.busy"] == pytest.approx(1.5)
    assert found["pipeline.S.busy_share"] == pytest.approx(0.75)


def test_idle_workers_that_are_seen_now_and_then_are_averaged() -> None:
    readings = [(float(at), _stage(idle=at % 2, workers=2)) for at in range(11)]
    found = _window(readings)
    assert found["pipeline.S.idle_share"] == pytest.approx(5 / 11 / 2)
    assert found["pipeline.S.busy_share"] == pytest.approx(1 - 5 / 11 / 2)


def test_levels_are_averaged_and_their_growth_is_told() -> None:
    found = _window([(float(at), _stage(waiting=10 + 5 * at, done=20 * at, queue=100)) for at in range(11)])
    assert found["pipeline.S.waiting"] == pytest.approx(35)
    assert found["pipeline.S.waiting_growth"] == pytest.approx(5)
    assert found["pipeline.S.wait_ms"] == pytest.approx(1000 * 35 / 20)
    assert found["pipeline.S.queue_share"] == pytest.approx(0.35)


def test_the_most_operations_at_once_are_told_of_what_is_seen_often() -> None:
    often = [(0.5 + second, _stage(current=1 + (second == 3))) for second in range(6)]
    assert _window(often)["pipeline.S.current_most"] == 2
    assert "pipeline.S.current_most" not in _window(often[:4])


def test_a_lag_that_grows_is_a_log_that_is_not_followed() -> None:
    found = _window([(float(at), {"changelog.changes.lag_s": 0.25 * at}) for at in range(11)])
    assert found["changelog.changes.follow"] == pytest.approx(0.75)


def test_without_a_lag_what_is_applied_of_what_is_read() -> None:
    def at(second: int) -> dict[str, float]:
        return {"changelog.changes.read": 100.0 * second, "changelog.changes.applied": 60.0 * second}

    assert _window([(0.0, at(0)), (10.0, at(10))])["changelog.changes.follow"] == pytest.approx(0.6)


def test_nothing_is_made_of_what_is_not_told() -> None:
    found = _window([(0.0, _stage(waiting=1)), (10.0, _stage(waiting=1))])
    assert set(found) == {"pipeline.S.waiting", "pipeline.S.waiting_growth"}


@pytest.mark.parametrize("name", ["pipeline.DB_APPLY.busy_share", "changelog.changes.lag_s", "pipeline.a-b.waiting"])
def test_their_names_are_known(name: str) -> None:
    assert is_known(name)
    assert metric(name).unit


@pytest.mark.parametrize(
    "name", ["pipeline.DB_APPLY.colour", "pipeline..waiting", "pipeline.4.waiting", "pipeline.a.b.c"]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_known(name)


def test_stages_are_in_the_order_of_the_pipeline() -> None:
    metrics = {"pipeline.A.order": 2.0, "pipeline.B.order": 0.0, "pipeline.C.order": 1.0}
    assert families.in_order(metrics) == ["B", "C", "A"]
