"""Metrics that a service exposes: what their names say, quantiles of histograms, and what is known of names."""

from __future__ import annotations

import bisect
import math
import re
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.metrics import METRICS, is_known, metric
from loadframe.metrics.agreements import contradictions
from loadframe.metrics.exposed import Name, derived_metrics, named, resolve, split, with_quantiles

LABELS = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=12), max_size=4)


@given(base=st.from_regex(r"[a-z_:]{1,12}", fullmatch=True), labels=LABELS)
def test_a_name_taken_apart_is_the_same_name(base: str, labels: dict[str, str]) -> None:
    name = Name(base, tuple(sorted(labels.items())))
    assert split(str(name)) == name


PLAINLY = re.compile(r'([^{=,"]+)="((?:[^"\\]|\\.)*)"')
"""What a label is; to find one so takes time by the square of a text that has none."""


@given(st.one_of(st.text('ab{=,"\\\n ', max_size=40), st.text(max_size=40)))
def test_labels_are_found_in_any_text_as_the_plain_pattern_finds_them(text: str) -> None:
    plainly = [(found[1].strip(), re.sub(r"\\(.)", _replaced, found[2])) for found in PLAINLY.finditer(text)]
    assert split("a{" + text) == Name("a", tuple(sorted(plainly)))


def _replaced(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


@pytest.mark.parametrize("text", ['"b" * 2_000_000', '"b" * 1_000_000 + \'="\' + "b" * 1_000_000'])
def test_a_text_of_two_million_characters_is_gone_through_once(text: str) -> None:
    """By the square of its length it would take hours; the limit of CPU time ends that."""
    reads = f"from loadframe.metrics.exposed import split; assert split('a{{' + {text}).labels == ()"
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30))  # noqa: E731
    assert subprocess.run([sys.executable, "-c", reads], preexec_fn=limit, check=False).returncode == 0


@pytest.mark.parametrize(
    ("base", "counted", "name"),
    [
        ("requests", True, "requests_total"),
        ("requests_total", True, "requests_total"),
        ("in_use", False, "in_use"),
        ("nodejs_active_handles_total", False, "nodejs_active_handles_total_level"),  # seen: prom-client for Node.js
    ],
)
def test_the_name_says_whether_it_is_counted_up(base: str, counted: bool, name: str) -> None:
    assert str(named(base, {}, counted=counted)) == name


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("service.http_requests_total", "1/s"),
        ("service.process_cpu_seconds_total", "s/s"),
        ('service.sent_bytes_total{peer="a"}', "bytes/s"),
        ("service.http_request_duration_seconds_count", "1/s"),
        ("service.http_request_duration_seconds_sum", "s/s"),
        ('service.http_request_duration_seconds_p95{path="/"}', "s"),
        ('service.jvm_memory_used_bytes{area="heap"}', "bytes"),
        ("service.jvm_memory_bytes_used", "bytes"),
        ("service.cache_hit_ratio", "share"),
        ("service.pool_in_use", "count"),
        ("service.handles_total_level", "count"),
        ("service.bytes_per_seconds", "count"),
    ],
)
def test_a_unit_follows_from_the_name(name: str, unit: str) -> None:
    assert name not in METRICS and is_known(name) and metric(name).unit == unit


def test_a_name_in_a_study_finds_its_series() -> None:
    there = {'service.pool{db="a",zone="x"}', "service.in_use", "service.done_total", "service.count_total_level"}
    there |= {'service.two{n="1"}', 'service.two{n="2"}'}
    assert resolve("in_use", there) == "service.in_use"
    assert resolve("pool", there) == resolve('pool{zone="x"}', there) == 'service.pool{db="a",zone="x"}'
    assert resolve('pool{zone="x",db="a"}', there) == 'service.pool{db="a",zone="x"}'
    assert resolve('pool{zone="y"}', there) is None
    assert resolve("done", there) == "service.done_total"
    assert resolve("count_total", there) == "service.count_total_level"
    assert resolve("two", there) is None, "which of them is not known"
    assert resolve('two{n="2"}', there) == 'service.two{n="2"}'


@given(st.lists(st.floats(0.001, 9.0), min_size=1, max_size=60), st.floats(0.1, 50.0))
def test_a_quantile_is_never_below_the_true_one_and_at_most_one_bucket_above(
    values: list[float], window_s: float
) -> None:
    bounds = [0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf]
    buckets = {bound: sum(value <= bound for value in values) / window_s for bound in bounds}
    rates = {f'service.t_seconds_bucket{{le="{bound:g}",path="/a"}}': rate for bound, rate in buckets.items()}
    found = with_quantiles({**rates, "service.other": 1.0})
    assert found.pop("service.other") == 1.0
    for ending, share in (("_p50", 0.5), ("_p95", 0.95), ("_p99", 0.99)):
        true = sorted(values)[math.ceil(share * len(values)) - 1]
        assert found[f'service.t_seconds{ending}{{path="/a"}}'] == bounds[bisect.bisect_left(bounds, true)]
    assert len(found) == 3, "buckets are no metrics of a step"


@pytest.mark.parametrize(
    "buckets",
    [
        {"1": 5.0, "2": 3.0, "+Inf": 8.0},  # fewer below 2 than below 1
        {"1": 5.0, "2": 8.0},  # how many there are is not known
        {"1": 0.0, "+Inf": 0.0},
        {"one": 1.0, "+Inf": 2.0},
    ],
    ids=["falls", "open", "nothing", "no number"],
)
def test_a_histogram_that_contradicts_itself_has_no_quantile(buckets: dict[str, float]) -> None:
    found = with_quantiles({f'service.t_bucket{{le="{bound}"}}': rate for bound, rate in buckets.items()})
    assert not [name for name in found if "_p" in name]


def test_beyond_the_last_bound_nothing_is_known() -> None:
    found = with_quantiles({'service.t_bucket{le="1"}': 6.0, 'service.t_bucket{le="+Inf"}': 10.0})
    assert found == {"service.t_p50": 1.0}


JVM = {
    'service.jvm_gc_collection_seconds_sum{gc="G1 Young Generation"}': 0.2,
    'service.jvm_gc_collection_seconds_sum{gc="G1 Old Generation"}': 0.3,
    'service.jvm_memory_used_bytes{area="heap",id="G1 Eden Space"}': 20e6,
    'service.jvm_memory_used_bytes{area="heap",id="G1 Old Gen"}': 40e6,
    'service.jvm_memory_used_bytes{area="nonheap",id="Metaspace"}': 90e6,
    'service.jvm_memory_max_bytes{area="heap",id="G1 Eden Space"}': -1.0,
    'service.jvm_memory_max_bytes{area="heap",id="G1 Old Gen"}': 64e6,
}
GO = {
    "service.go_gc_duration_seconds_sum": 0.01,
    "service.go_cpu_classes_gc_total_cpu_seconds_total": 0.5,
    "service.go_sched_gomaxprocs_threads": 2.0,
    "service.go_memstats_heap_alloc_bytes": 30e6,
    "service.go_gc_gomemlimit_bytes": 9.223372036854776e18,
}


def test_what_is_known_of_a_runtime_is_found_by_its_names() -> None:
    names = [f"target.runtime.{name}" for name in ("gc_share", "heap_use", "heap_ceiling")]
    jvm, go = derived_metrics(JVM), derived_metrics(GO)
    assert [jvm[name] for name in names] == [pytest.approx(0.5), 60e6, 64e6], "-1 is no bound, Metaspace is no heap"
    assert [go.get(name) for name in names] == [0.25, 30e6, None], "MaxInt64 is no limit"
    assert derived_metrics({"target.cpu.cores": 1.0}) == {}
    assert names[0] not in derived_metrics({"service.go_gc_duration_seconds_sum": 0.01}), "pauses alone do not say that"
    micrometer = derived_metrics(
        {"service.jvm_gc_live_data_size_bytes": 40e6, "service.jvm_gc_max_data_size_bytes": 64e6}
    )
    assert [micrometer[f"target.runtime.{name}"] for name in ("heap_live", "heap_ceiling")] == [40e6, 64e6]
    assert derived_metrics({"service.nodejs_gc_duration_seconds_sum": 0.4})[names[0]] == 0.4


def test_a_counter_of_requests_that_contradicts_the_driver_is_blind() -> None:
    served = {'service.http_requests_total{code="200"}': 3.0, 'service.http_requests_total{code="500"}': 1.0}
    metrics = {**served, **derived_metrics(served), "throughput": 900.0}
    assert metrics["target.requests"] == 4.0
    (one,) = contradictions(metrics)
    assert one.counter == "target.requests" and {*served, "target.requests"} <= {*one.metrics}
    assert not contradictions({**metrics, "target.requests": 850.0})


def test_a_study_names_its_own_counter_of_requests() -> None:
    exposed = {
        'service.jobs_total{kind="a"}': 5.0,
        'service.jobs_total{kind="b"}': 7.0,
        "service.http_requests_total": 1.0,
    }
    assert derived_metrics(exposed, ["jobs"])["target.requests"] == 12.0
    assert "target.requests" not in derived_metrics(exposed, ["jobz"]), (
        "a name that is not there is not replaced by a guess"
    )
