"""Forecasts hold what was known of the systems that were measured, and say how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from loadframe.experiments.forecasting import predict
from loadframe.model import Estimate, Limit, Observation, Observations, Saturation
from loadframe.prediction import system as systems
from loadframe.prediction.forecasting import forecast, held_back

Measure = Callable[..., Observations]


def inside(estimate: Estimate, value: float) -> bool:
    return estimate.low <= value <= estimate.high


def test_noise_free_measurements_give_the_truth(measure: Measure, true_throughput: Callable[..., float]) -> None:
    found = forecast(measure([1, 2, 4, 6, 8]), [16, 31, 62])
    assert found.refused is None
    assert found.kind == "closed"
    assert found.measured == (1, 2, 4, 6, 8)
    for point in found.at:  # the scalability law, which is half of it, knows no ceiling
        assert point.throughput.value == pytest.approx(true_throughput(int(point.load)), rel=0.15)
        assert inside(point.throughput, true_throughput(int(point.load)))
    assert found.capacity is not None
    assert found.capacity.limited_by == "disk"
    assert inside(found.capacity.load, 31)
    assert found.capacity.throughput.value == pytest.approx(125, rel=0.03)
    first, second = found.saturation
    assert (first.resource, second.resource) == ("disk", "cpu")
    assert first.demand_s == pytest.approx(0.008, rel=0.01)
    assert second.demand_s == pytest.approx(0.04, rel=0.01)
    assert (first.servers, second.servers) == (1, 8)
    assert second.at_load is not None
    assert inside(second.at_load, 0.248 / 0.005)


def rows(throughputs: dict[float, float], latencies_ms: dict[float, float] | None = None) -> Observations:
    """A curve of one window at each load, without resources."""
    slow = latencies_ms or {}
    return Observations(
        "curve", tuple(Observation(load, value, latency_p95_ms=slow.get(load)) for load, value in throughputs.items())
    )


@pytest.mark.parametrize(
    "measured",
    [
        dict.fromkeys((1, 2, 4, 8, 16, 32), 1000.0),
        dict.fromkeys((5, 10, 15, 20, 25, 30), 1000.0),
        {1: 400.0, 2: 700.0, 4: 1000.0, 8: 990.0, 16: 1005.0, 32: 985.0},
        {**dict.fromkeys((1, 2, 4, 8, 16), 1000.0), 32: 960.0},
        {1: 101.0, 2: 150.0, 4: 191.0, 8: 196.0, 32: 188.0},
    ],
    ids=["flat", "flat in steps", "flat but for noise", "flat, then 4 % less", "a plateau"],
)
def test_no_fall_is_forecast_that_no_data_show(measured: dict[float, float]) -> None:
    for point in forecast(rows(measured), [33, 48, 64, 128]).at:
        assert point.throughput.value >= max(measured.values()) * (1 - 1e-9), point


@pytest.mark.parametrize(
    "measured",
    [
        {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0},
        {1: 100.15, 2: 179.53, 4: 306.6, 8: 473.87, 16: 640.37},
        {1: 100.0, 2: 190.0, 4: 360.0, 8: 650.0, 16: 900.0, 32: 930.0},
    ],
    ids=["linear", "rising", "levelling off"],
)
def test_a_forecast_does_not_fall_with_the_load_alone_or_among_others(measured: dict[float, float]) -> None:
    together = [point.throughput.value for point in forecast(rows(measured), [33, 48, 64, 100]).at]
    assert together == sorted(together)
    assert [forecast(rows(measured), [load]).at[0].throughput.value for load in (33, 48, 64, 100)] == together


def test_below_the_loads_measured_nothing_is_forecast() -> None:
    found = forecast(rows({8: 800, 16: 1500, 32: 2400, 64: 2600}), [1, 4, 8, 100])
    assert [point.load for point in found.at] == [8, 100]
    assert "No forecast at 1, 4: 8 is the lowest load that was measured." in found.notes


def test_after_a_cliff_that_is_over_no_second_one_is_forecast() -> None:
    """Seen: 400/s at 128, 200/s at 129: half of the forecast was a law that missed the cliff twofold."""
    measured = {1.0: 1000.0, 2.0: 2000.0, 4.0: 4000.0, **dict.fromkeys((8.0, 16.0, 32.0, 64.0, 128.0), 400.0)}
    near, far = (point.throughput.value for point in forecast(rows(measured), [129, 256]).at)
    assert near == pytest.approx(400, rel=0.05) and far > 300


def test_a_fall_that_was_measured_goes_on() -> None:
    found = forecast(rows({1: 400, 2: 700, 4: 1000, 8: 900, 16: 700, 32: 450}), [64])
    assert found.at[0].throughput.value < 450


def test_within_the_loads_measured_the_latency_is_between_its_neighbours(measure: Measure) -> None:
    seen = measure([1, 2, 4, 8])
    timed = replace(seen, rows=tuple(replace(row, latency_p95_ms=10 * row.load) for row in seen.rows))
    alone = rows({1: 400, 2: 700, 4: 1000, 8: 1100, 16: 1150}, {1: 10, 2: 20, 8: 80})
    for observations in (timed, alone):
        points = forecast(observations, [1, 1.5, 4, 6, 8]).at
        values = [point.latency_p95_ms.value if point.latency_p95_ms else None for point in points]
        assert values == pytest.approx([10, 15, 40, 60, 80]), observations.name
    assert forecast(alone, [12]).at[0].latency_p95_ms is None, "between a load with and one without a latency"


def test_the_same_data_give_the_same_forecast(measure: Measure) -> None:
    seen = measure([1, 2, 4], noise=0.03)
    assert forecast(seen, [8]) == forecast(seen, [8])


@pytest.mark.long
def test_most_intervals_hold_and_most_errors_are_small(measure: Measure, true_throughput: Callable[..., float]) -> None:
    """Seeded count: 12 measurements with 3 % of noise up to a quarter of the saturation, with and without growth. The
    benchmark counts many more systems; this one notices when the intervals or the forecasts break."""
    held, errors = [], []
    for seed in range(12):
        growth = 0.01 * (seed % 2)  # 31 % until saturation, or none
        found = forecast(measure([1, 2, 4, 6, 8], noise=0.03, seed=seed, growth=growth), [16, 31, 62])
        for point in found.at:
            actual = true_throughput(int(point.load), growth)
            held.append(inside(point.throughput, actual))
            errors.append(abs(point.throughput.value / actual - 1))
    assert 0.8 <= np.mean(held) <= 1
    assert np.median(errors) < 0.12


def test_more_measurements_and_less_noise_make_narrower_intervals(measure: Measure) -> None:
    def width(**options: Any) -> float:
        (point,) = forecast(measure([1, 2, 4, 6, 8], **options), [31]).at
        return point.throughput.high / point.throughput.low

    assert width(noise=0.01, blocks=4) < width(noise=0.05, blocks=1)


def test_growth_is_seen_and_told(measure: Measure, true_throughput: Callable[..., float]) -> None:
    found = forecast(measure([1, 2, 4, 6, 8], growth=0.05), [31])
    assert inside(found.at[0].throughput, true_throughput(31, 0.05))
    assert found.saturation[0].growth is not None
    assert found.saturation[0].growth.low > 1
    assert any("needs more of disk" in note for note in found.notes)


def test_the_further_away_the_less_sure(measure: Measure) -> None:
    near, far = (
        point.throughput.high / point.throughput.low for point in forecast(measure([1, 2, 3], blocks=3), [4, 62]).at
    )
    assert 1 < near < far


def test_resources_that_are_alike_saturate_together(measure: Measure) -> None:
    """Of eight shards the first does not saturate earlier only because there are eight of them."""
    seen = measure([1, 2, 4, 8], noise=0.03, blocks=3)
    many = replace(
        seen,
        rows=tuple(
            replace(row, utilizations={f"shard{n}": row.utilizations["disk"] for n in range(8)}) for row in seen.rows
        ),
        ceilings=frozenset(f"shard{n}" for n in range(8)),
    )
    one = replace(
        many,
        rows=tuple(replace(row, utilizations={"shard0": row.utilizations["shard0"]}) for row in many.rows),
        ceilings=frozenset({"shard0"}),
    )
    first, alone = forecast(many, [8]).capacity, forecast(one, [8]).capacity
    assert first is not None and alone is not None
    assert first.load == alone.load


def test_a_regular_server_reaches_the_bound_and_an_irregular_one_waits(measure: Measure) -> None:
    seen = measure([1, 2, 4, 8])
    system = systems.draw(seen, ["disk"], "closed", 40, np.random.default_rng(1))
    loads = np.array([31.0])
    bound, waiting = (replace(system, regular=np.full(40, share)).throughput(loads)[:, 0] for share in (1.0, 0.0))
    demand = system.demands["disk"].at(loads)[:, 0]
    assert bound == pytest.approx(np.minimum(31 / (system.delay_s + demand), 1 / demand), rel=0.01)
    assert np.median(waiting / bound) < 0.95


def test_an_offered_rate_is_served_until_a_resource_is_used_up() -> None:
    rows = tuple(Observation(load, load, 10.0, None, {"cpu": 0.002 * load}) for load in (20.0, 40.0, 60.0, 80.0))
    seen = Observations("x", rows)
    found = forecast(seen, [100, 250, 1000])
    assert found.kind == "rate"
    assert [point.throughput.value for point in found.at[:2]] == pytest.approx([100, 250], rel=0.12)
    assert inside(found.at[2].throughput, 500)
    assert found.at[2].latency_p95_ms is None  # the queue has no end
    assert all(point.throughput.high <= 1.06 * point.load for point in found.at), "no more than is offered"
    assert found.capacity is not None
    assert inside(found.capacity.load, 500)
    assert forecast(seen, [100], kind="closed").kind == "closed"


def test_pipelines_without_think_time_saturate_where_the_stage_does() -> None:
    """Three stages of 10, 20 and 5 ms on 4, 2 and 1 servers: in proportion, until two of 20 ms are busy at 3.5."""
    rows = tuple(
        Observation(n, n / 0.035, None, None, {"a": n / 14, "b": n / 3.5, "c": n / 7}) for n in (0.25, 0.5, 0.75, 1.0)
    )
    found = forecast(Observations("x", rows, servers={"a": 4, "b": 2}), [2])
    assert found.capacity is not None
    assert found.capacity.limited_by == "b"
    assert inside(found.capacity.load, 3.5)


def test_latency_grows_with_the_queue_and_meets_what_was_measured(measure: Measure) -> None:
    seen = measure([1, 2, 4, 6, 8])
    assert forecast(seen, [16]).at[0].latency_p95_ms is None
    timed = replace(seen, rows=tuple(replace(row, latency_p95_ms=150 + row.load) for row in seen.rows))
    found = forecast(timed, [8, 31, 62])
    values = [point.latency_p95_ms.value for point in found.at if point.latency_p95_ms is not None]
    assert values == sorted(values)
    assert values[0] == pytest.approx(157, rel=0.05)
    # Of 62 clients about 31 wait at the disk, 8 ms each.
    assert values[2] > 150 + 31 * 8


def test_a_latency_claims_no_interval(measure: Measure) -> None:
    """The curves that intervals rest on have no latencies."""
    seen = measure([1, 2, 4, 6, 8])
    timed = replace(seen, rows=tuple(replace(row, latency_p95_ms=150 + row.load) for row in seen.rows))
    found = forecast(timed, [16, 31])
    assert [(p95.low, p95.high) for point in found.at if (p95 := point.latency_p95_ms)] == 2 * [(0, math.inf)]
    assert any("Latencies have no interval" in note for note in found.notes)
    assert not any("Latencies" in note for note in forecast(seen, [16]).notes)
    nothing = replace(seen, rows=tuple(replace(row, latency_p95_ms=1e-308) for row in seen.rows))
    assert all(point.latency_p95_ms is not None for point in forecast(nothing, [16]).at), "a latency of nothing"


def test_a_ceiling_bounds_without_taking_time(measure: Measure) -> None:
    seen = measure([1, 2, 4, 6, 8])
    rate = {row.load: row.throughput / 60 for row in seen.rows}
    rows = tuple(replace(row, utilizations={**row.utilizations, "quota": rate[row.load]}) for row in seen.rows)
    found = forecast(replace(seen, rows=rows, ceilings=frozenset({"quota"})), [8, 31])
    assert found.capacity is not None
    assert found.capacity.limited_by == "quota"
    assert inside(found.at[1].throughput, 60)
    assert found.at[1].throughput.high <= found.capacity.throughput.high, "nothing goes beyond the most"
    assert found.at[0].throughput.value == pytest.approx(rate[8] * 60, rel=0.03)


def test_a_ceiling_that_is_used_up_from_the_first_client_on_is_the_most() -> None:
    """A quota of writes and nothing else that rises: no station has any work, and the delay that is left went to 0."""
    measured = [
        (1, 88.3, 0.99998),
        (1, 91.7, 0.99981),
        (2, 81.7, 0.88873),
        (2, 78.3, 1.0),
        (3, 105, 1.0),
        (3, 105, 1.0),
    ]
    rows = tuple(Observation(load, served, utilizations={"writes": used}) for load, served, used in measured)
    found = forecast(Observations("quota", rows, axis="concurrency", ceilings=frozenset({"writes"})), [6])
    assert found.capacity is not None
    assert found.capacity.limited_by == "writes"
    assert 105 <= found.capacity.throughput.value < 2 * 105


def test_what_is_held_back_stays_within_its_interval() -> None:
    most = Estimate(100.0, 50.0, 400.0)
    assert held_back(Estimate(400.0, 90.0, 900.0), most) == Estimate(200.0, 90.0, 400.0)
    assert held_back(Estimate(400.0, 300.0, 500.0), most) == Estimate(300.0, 300.0, 400.0)
    assert held_back(Estimate(80.0, 60.0, 120.0), most) == Estimate(80.0, 60.0, 120.0)


def test_a_resource_that_does_not_follow_is_left_out(measure: Measure) -> None:
    seen = measure([1, 2, 4, 6, 8], noise=0.01)
    still = [0.3, 0.31, 0.29, 0.3, 0.3]
    rows = tuple(
        replace(row, utilizations={**row.utilizations, "memory": share})
        for row, share in zip(seen.rows, still, strict=True)
    )
    found = forecast(replace(seen, rows=rows), [31])
    assert [one.resource for one in found.saturation] == ["disk", "cpu"]
    assert any(note.startswith("Left out") and "memory" in note for note in found.notes)


def test_limits_that_run_out_come_first_to_last(measure: Measure) -> None:
    def limit(name: str, load: float | None) -> Limit:
        reached = None if load is None else Saturation(load, load, load)
        return Limit(name, "process", 100, None, 100, 10, 90, True, "", reached)

    found = forecast(measure([1, 2, 4]), limits=[limit("b", 50), limit("c", None), limit("a", 20)])
    assert [one.id for one in found.exhaustion] == ["a", "b"]


def test_without_loads_twice_and_four_times_the_highest_are_forecast(measure: Measure) -> None:
    assert [point.load for point in forecast(measure([1, 2, 4])).at] == [8, 16]


# --- refusals ---


def without(observations: Observations, *names: str) -> Observations:
    rows = tuple(
        replace(row, utilizations={name: used for name, used in row.utilizations.items() if name not in names})
        for row in observations.rows
    )
    return replace(observations, rows=rows)


def reason(observations: Observations) -> str:
    found = forecast(observations, [100])
    assert (found.at, found.capacity, found.saturation) == ((), None, ())
    return found.refused or ""


def test_one_load_is_refused_and_so_are_two_that_were_measured_once(measure: Measure) -> None:
    assert "1 load " in reason(measure([8], blocks=5))
    assert "2 windows at 2 loads" in reason(measure([1, 8]))


def test_two_loads_measured_again_and_again_carry_a_forecast_that_is_less_sure(measure: Measure) -> None:
    two, more = (forecast(measure(loads, blocks=4), [40]) for loads in ([1, 4], [1, 2, 4, 8]))
    assert two.refused is None and more.refused is None
    widths = [one.at[0].throughput.high / one.at[0].throughput.low for one in (two, more)]
    assert widths[0] > widths[1]


def only_the_curve(observations: Observations, at: float = 16) -> str:
    """Why resources do not explain it; the throughput is forecast from the curve alone, the most is a bound."""
    found = forecast(observations, [at])
    assert found.refused is None
    assert (found.capacity, found.saturation) == (None, ())
    assert found.at_least == max(
        np.median([r.throughput for r in observations.rows if r.load == x]) for x in found.measured
    )
    assert found.at[0].throughput.low < found.at[0].throughput.value < found.at[0].throughput.high
    return found.unexplained or ""


def test_a_curve_alone_is_forecast_with_wide_intervals(measure: Measure, true_throughput: Callable[..., float]) -> None:
    seen = measure([1, 2, 4, 8])
    alone = without(seen, "cpu", "disk")
    assert "No utilisation" in only_the_curve(alone)
    with_resources, without_them = (forecast(one, [31]).at[0].throughput for one in (seen, alone))
    assert inside(without_them, true_throughput(31))
    assert without_them.high / without_them.low > 1.2
    assert inside(with_resources, true_throughput(31))


def test_two_loads_of_a_curve_alone_are_refused(measure: Measure) -> None:
    told = reason(without(measure([1, 4], blocks=4), "cpu", "disk"))
    assert "No utilisation" in told and "2 loads are too few" in told


def test_resources_that_nobody_sees_rising_explain_nothing(measure: Measure) -> None:
    seen = measure([1, 2, 4, 8])
    idle = replace(seen, rows=tuple(replace(row, utilizations={"cpu": 0.04}) for row in seen.rows))
    assert "No resource rises up to load 8" in only_the_curve(idle)
    noise = [0.3, 0.28, 0.33, 0.29]
    busy = tuple(replace(row, utilizations={"cpu": used}) for row, used in zip(seen.rows, noise, strict=True))
    assert "No resource rises up" in only_the_curve(replace(seen, rows=busy))


def test_a_resource_that_is_used_up_while_more_is_served_is_no_ceiling(measure: Measure) -> None:
    """Others use the machine's CPUs, or a full disk takes more at once: forecast at the throughput of the lowest load
    before."""
    seen = measure([1, 2, 4, 8])
    full = replace(seen, rows=tuple(replace(row, utilizations={"cpu": 1.0}) for row in seen.rows))
    assert "No resource rises up" in only_the_curve(full)
    assert forecast(full, [16]).at[0].throughput.value > 1.3 * seen.rows[-1].throughput


def test_a_bottleneck_that_was_not_measured_leaves_the_curve_alone(measure: Measure) -> None:
    """The disk, which saturates at 31 clients, is left out; the CPUs are used by less than two thirds."""
    seen = without(measure([2, 8, 31, 62, 100], noise=0.01), "disk")
    assert "not measured" in only_the_curve(seen, 200)
    assert inside(forecast(seen, [200]).at[0].throughput, 125)


def test_a_bottleneck_that_was_measured_is_not(measure: Measure) -> None:
    found = forecast(measure([2, 8, 31, 62, 100], noise=0.01), [200])
    assert found.refused is None and found.unexplained is None
    assert inside(found.at[0].throughput, 125)


def test_loads_further_away_than_any_curve_reached_are_not_forecast(measure: Measure) -> None:
    found = forecast(without(measure([1, 2, 4, 8]), "cpu", "disk"), [16, 1e6])
    assert [point.load for point in found.at] == [16]
    assert any("No forecast at 1e+06" in note for note in found.notes)


# --- what was seen, and limits ---


def test_the_most_is_never_below_what_was_seen() -> None:
    """Seen: "at most 1,900/s" with 4,000/s in the input. CPU per request falls seven times (batches)."""
    rows = [(load, 1000 * load, 0.15 * load**0.4) for load in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)]
    seen = Observations(
        "x", tuple(Observation(load, x, None, None, {"cpu": used}) for load, x, used in rows), axis="rate"
    )
    found = forecast(seen, [8], kind="rate")
    assert found.capacity is not None
    assert found.capacity.throughput.low >= 4000
    assert found.capacity.throughput.high > 15_000, "U = 0.15 (X / 1000)^0.4 is 1 at 115,000/s"


def limit(name: str, load: float, *, loud: bool = True) -> Limit:
    return Limit(name, "process", 100, None, 100, 10, 90, loud, "", Saturation(load, load * 0.9, load * 1.1))


def test_a_limit_that_runs_out_first_is_the_capacity(measure: Measure, true_throughput: Callable[..., float]) -> None:
    """Seen: 2,100/s forecast, 462 measured, with worker_connections among the limits that were printed."""
    seen = measure([1, 2, 4, 6, 8])
    found = forecast(seen, [12, 62], limits=[limit("worker_connections", 12)])
    assert found.capacity is not None
    assert found.capacity.limited_by == "worker_connections"
    assert found.capacity.load == Estimate(12, pytest.approx(10.8), pytest.approx(13.2))
    assert inside(found.capacity.throughput, true_throughput(12))
    assert found.at[1].throughput.value == pytest.approx(found.at[0].throughput.value)
    for harmless in (limit("late", 500), limit("silent", 12, loud=False), limit("reached long ago", 3)):
        free = forecast(seen, [12, 62], limits=[harmless])
        assert free.capacity is not None and free.capacity.limited_by == "disk"
        assert free.at[1].throughput.value > 1.2 * free.at[0].throughput.value


# --- properties ---

some_rows = st.lists(
    st.builds(
        Observation,
        load=st.floats(0.1, 1e4),
        throughput=st.floats(0, 1e6),
        latency_p95_ms=st.one_of(st.none(), st.floats(0, 1e5)),
        latency_mean_ms=st.none(),
        utilizations=st.fixed_dictionaries({"a": st.floats(0, 1), "b": st.floats(0, 1)}),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=20, phases=[Phase.explicit, Phase.generate])
@given(some_rows, st.sampled_from([1.0, 4.0, 64.0]))
@example(
    rows=[
        Observation(0.12, 24225.421, None, None, {"b": 0.7177, "a": 1.36e-67}),
        Observation(1146.44, 3600.0, 5e-324, None, {"b": 0.444, "a": 2.2e-16}),
        Observation(541.11, 521307.96, None, None, {"a": 0.618, "b": 9.26e-240}),
        Observation(0.1, 471277.46, 1.63e-141, None, {"b": 0.942, "a": 0.322}),
    ],
    servers=4.0,
)
@example(
    rows=[
        Observation(6919.99, 918694.95, 86922.16, None, {"b": 1.11e-308, "a": 0.967}),
        Observation(2346.57, 243800.99, 78937.94, None, {"a": 5e-324, "b": 0.231}),
        Observation(4694.95, 1.73e-277, 48065.31, None, {"b": 0.032, "a": 0.999}),
        Observation(8296.25, 889156.4, 76430.12, None, {"a": 0.873, "b": 0.533}),
        Observation(6703.0, 479656.88, None, None, {"a": 1.72e-190, "b": 0.474}),
        Observation(0.99999, 1.11e-308, None, None, {"a": 0.02, "b": 0.846}),
        Observation(6202.53, 1.18e-38, 12241.51, None, {"b": 0.757, "a": 0.397}),
        Observation(6056.32, 0.0, 30455.74, None, {"a": 0.0, "b": 1e-05}),
    ],
    servers=64.0,
)
@example(  # rounding makes a covariance indefinite
    rows=[
        *[Observation(40.0, 40.0, 15825.44, None, {"a": 0.9639411941046816, "b": 0.7115636242371478})] * 3,
        Observation(4462.748216947122, 770056.4737474665, None, None, {"b": 0.6764058613325908, "a": 5e-296}),
    ],
    servers=4.0,
)
@example(  # of "a" nothing was used at the loads before the highest
    rows=[
        *[Observation(8669.63, 305894.84, 0.9, None, {"b": 0.703, "a": 0.0})] * 4,
        Observation(9093.37, 885827.24, 0.9, None, {"b": 0.882, "a": 0.162}),
        Observation(2960.69, 597742.44, 35494.87, None, {"b": 0.703, "a": 0.0}),
    ],
    servers=64.0,
)
def test_any_observations_are_forecast_or_refused(rows: list[Observation], servers: float) -> None:
    found = forecast(Observations("x", tuple(rows), servers={"a": servers}), [5, 5000])
    if found.refused is not None:
        return
    best = max(np.median([row.throughput for row in rows if row.load == load]) for load in found.measured)
    assert found.at_least >= best
    every = [point.throughput for point in found.at]
    every += [one.at_load for one in found.saturation if one.at_load is not None]
    if found.capacity is not None:
        every.append(found.capacity.throughput)
        assert found.capacity.throughput.low >= best
    for estimate in every:
        assert 0 <= estimate.low <= estimate.value <= estimate.high
        assert math.isfinite(estimate.value)


def test_the_work_does_not_grow_with_the_square_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loads were found again for each row: 8,000 rows took 10 s, 100,000 more than a minute."""
    of, looked = Observations.loads.fget, [0]  # type: ignore[attr-defined]

    def counted(observations: Observations) -> Any:
        looked[0] += 1
        return of(observations)

    monkeypatch.setattr(Observations, "loads", property(counted))
    for rows in (40, 400):
        seen = tuple(Observation(1 + row % 4, 10.0 * (1 + row % 4)) for row in range(rows))
        predict(Observations("points", seen), [20.0], up_to=3)
    assert looked[0] < 40


def test_a_growth_that_is_carried_far_is_told_by_its_nearer_end(measure: Measure) -> None:
    """Seen: "22 times as much at its saturation (22 to 22)", of a saturation anywhere from 100 to 1,800."""
    rows = [(load, 5.0 * load * (1 + 0.01 * (block - 1))) for load in (10, 20, 40, 60, 80, 100) for block in range(3)]
    observations = Observations(
        "x", tuple(Observation(load, x, utilizations={"lock": (load / 180) ** 2}) for load, x in rows), axis="rate"
    )
    found = forecast(observations)
    (lock,) = found.saturation
    assert lock.growth is not None and lock.growth.low < 0.8 * lock.growth.value < lock.growth.value < lock.growth.high
    (note,) = [one for one in found.notes if one.startswith("A request needs more of lock")]
    assert "at least" in note and "e+" not in note


def test_where_the_highest_load_got_nothing_no_forecast_is_made() -> None:
    """Seen: 52 requests/s at 16, where 4 gave 20 and 8 gave none."""
    rows = [(1, 5.0), (2, 10.0), (4, 20.0), (8, 0.0)]
    found = forecast(Observations("x", tuple(Observation(load, x) for load, x in rows), axis="concurrency"), [16])
    assert found.refused is not None and "At load 8, the highest, nothing was served" in found.refused


def test_a_growth_from_nearly_nothing_is_no_ratio() -> None:
    """What the resource does without requests is all of its use at the lowest loads."""
    rows = [(load, 5.0 * load) for load in (10, 20, 40, 60, 80, 100) for _ in range(3)]
    observations = Observations(
        "x",
        tuple(Observation(load, x, utilizations={"disk": 0.05 + 0.5 * (load / 100) ** 6}) for load, x in rows),
        axis="rate",
    )
    assert all(one.growth is None for one in forecast(observations).saturation)


def test_what_is_used_much_at_any_load_does_not_saturate_first() -> None:
    """A memory that is 90 % full by day and by night, as ten times more is served."""
    rows = [(load, 5.0 * load) for load in (10, 20, 40, 60, 80, 100) for _ in range(3)]
    used = {load: {"memory": 0.9, "cpu": 0.003 * load} for load, _ in rows}
    observations = Observations(
        "x", tuple(Observation(load, x, utilizations=used[load]) for load, x in rows), axis="rate"
    )
    assert [one.resource for one in forecast(observations).saturation] == ["cpu"]
