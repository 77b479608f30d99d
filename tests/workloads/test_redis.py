"""redis-benchmark's own reports: what they say of the latencies is what a part of a step is told by."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import WHOLE_SECONDS, Endpoint
from loadframe.workloads import registry
from loadframe.workloads.own_program import OutputDriver
from loadframe_drivers.redis import read_memtier, read_report

RECORDED = Path(__file__).parents[1] / "data/drivers/recorded/redis-benchmark-7.0.15.txt"


def whole() -> list[str]:
    """Its two reports, without what it shows while it runs."""
    text = RECORDED.read_bytes().decode().replace("\r", "\n")
    starts = [at for at in range(len(text)) if text.startswith(("====== SET ======", "====== GET ======"), at)]
    return [text[at:until] for at, until in zip(starts, [*starts[1:], len(text)], strict=True)]


def test_a_report_has_its_requests_its_time_and_its_quantiles() -> None:
    put, get = (read_report(text) for text in whole())
    assert (put.name, put.requests, get.name, get.requests) == ("set", 20_000, "get", 20_000)
    assert put.length_s == pytest.approx(20_000 / 6375.52)
    for report, (mean, p50, p95, p99, most) in (
        (put, (0.744, 0.063, 4.695, 11.063, 28.799)),
        (get, (0.095, 0.063, 0.095, 0.551, 12.623)),
    ):
        each = np.repeat(report.values_ms, report.counts)
        assert len(each) == 20_000
        assert np.percentile(each, [50, 95, 99]) == pytest.approx([p50, p95, p99], rel=0.05)
        assert each.mean() == pytest.approx(mean, rel=0.05)
        assert each.max() == pytest.approx(most, rel=0.01)


def test_between_two_percentiles_far_apart_p95_is_what_redis_says() -> None:
    """It prints 93.75 and 96.875 %: where requests are of two kinds, a line between them is off by a factor."""
    text = re.sub(r"^.*cumulative count.*\n", "", whole()[0], flags=re.M)
    text = re.sub(r"(avg +min +p50 +p95 +p99 +max *\n)[ 0-9.]+", r"\1 0.4 0.1 0.2 2.838 2.95 3.0 ", text)
    for share, ms, count in ((50, 0.2, 10_000), (93.75, 0.21, 18_800), (96.875, 2.9, 19_400), (100, 3.0, 20_000)):
        text += f"{share:.3f}% <= {ms:.3f} milliseconds (cumulative count {count})\n"
    report = read_report(text)
    assert np.percentile(np.repeat(report.values_ms, report.counts), 95.1) == pytest.approx(2.838, rel=0.05)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("====== SET ======", ""), "no report"),
        (("20000 requests completed", "2x requests completed"), "no report"),
        (("throughput summary: 6375.52", "throughput summary: nan"), "no report"),
        (("throughput summary: 6375.52", "throughput summary: 0.0"), "at 0/s"),
        (("(cumulative count 10370)", "(cumulative count 90370)"), "more requests than it sent"),
        (("29.103 milliseconds", "29.1.03 milliseconds"), "latencies that cannot be"),
        (("29.103 milliseconds", "9999999999 milliseconds"), "latencies that cannot be"),
    ],
)
def test_a_report_that_cannot_be_is_refused(change: tuple[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_report(whole()[0].replace(*change))


def test_a_report_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match=r"of its 20,000 requests"):
        read_report(
            "\n".join(line for line in whole()[0].splitlines() if "count 20000)" not in line and "28.799" not in line)
        )


def test_a_point_that_contradicts_those_before_it_is_left_out() -> None:
    text = whole()[0]
    line = next(line for line in text.splitlines() if "(cumulative count 18138)" in line)
    without = read_report(text.replace(line, ""))
    spoilt = read_report(text.replace(line, line.replace("18138", "16900")))
    assert (spoilt.values_ms == without.values_ms).all() and (spoilt.counts == without.counts).all()
    assert not np.array_equal(read_report(text).values_ms, without.values_ms)


@pytest.mark.long
@given(st.data())
def test_a_spoilt_report_is_refused_or_has_as_many_latencies_as_requests(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(whole()))
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.text("0123456789.-= \nx", max_size=4)) + text[at + data.draw(st.integers(0, 40)) :]
    try:
        found = read_report(text)
    except ValueError:
        return
    assert found.counts.sum() == found.requests and (found.counts > 0).all()
    assert np.isfinite(found.values_ms).all() and (found.values_ms >= 0).all()
    assert 0 < found.length_s < np.inf


MEMTIER = RECORDED.with_name("memtier.json").read_text()


def test_a_report_of_memtier_has_both_kinds_of_request_and_their_histograms() -> None:
    started_s, (put, get) = read_memtier(MEMTIER)
    assert started_s == 1795560699.727
    assert (put.seconds, get.seconds) == (((0, 2000),), ((0, 6000),))
    assert (put.name, put.requests, get.name, get.requests) == ("set", 2000, "get", 6000)
    assert put.length_s == get.length_s == 0.236
    for report, p50, p999 in ((put, 0.071, 6.463), (get, 0.071, 14.015)):
        each = np.repeat(report.values_ms, report.counts)
        assert len(each) == report.requests
        assert np.percentile(each, [50, 99.9]) == pytest.approx([p50, p999], rel=0.05)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("ALL STATS", "STATS"), "no report of memtier"),
        (('"Total duration": 236', '"Total duration": 0'), "it took 0 s from"),
        (('"Count": 2000', '"Count": 2001'), "counts 2001, its histogram 2000"),
        (('"0":', '"7":'), "seconds that are not of its 0.236 s"),
        (('"Compressed Histogram": "', '"Compressed Histogram": "x'), "histogram|padding|base64|version"),
        (('"Total duration": 236', '"Total duration": [236]'), "no report of memtier"),
        (("{", "["), "delimiter|Expecting"),
    ],
)
def test_a_report_of_memtier_that_cannot_be_is_refused(change: tuple[str, str], why: str) -> None:
    assert change[0] in MEMTIER
    with pytest.raises(ValueError, match=why):
        read_memtier(MEMTIER.replace(*change, 1))


@pytest.mark.skipif(shutil.which("memtier_benchmark") is None, reason="Debian 12 has no package of memtier_benchmark")
@pytest.mark.server
def test_a_step_of_memtier_has_both_kinds_of_request(redis_server: Endpoint, tmp_path: Path) -> None:
    made = registry.make("redis", {"program": "memtier_benchmark", "ratio": "1:3"}, Allowance(US))
    driver = made.start(redis_server, 3, tmp_path, 2.0)
    assert driver.wait(60)
    driver.kill()
    requests = driver.requests()
    assert made.operations == ("request", "set", "get")
    assert (requests.operation == 2).sum() == pytest.approx(3 * (requests.operation == 1).sum(), rel=0.02)


@pytest.mark.long
@pytest.mark.server
def test_a_step_is_made_of_parts_that_redis_benchmark_reported(redis_server: Endpoint, tmp_path: Path) -> None:
    made = registry.make("redis", {"test": "set", "pipeline": 2, "keys": 100}, Allowance(US))
    driver = made.start(redis_server, 3, tmp_path, 2.0)
    assert isinstance(driver, OutputDriver) and driver.wait(60)
    driver.kill()
    requests = driver.requests()
    assert made.operations == ("request", "set")
    assert driver.marks == (WHOLE_SECONDS,)
    assert 1.5 < requests.end_s[-1] - requests.end_s[0] < 3.5
    assert (requests.outcome == 0).all() and (requests.latency_ms > 0).all()


@pytest.mark.server
def test_what_is_no_redis_is_told_in_its_words(web_server: Endpoint, tmp_path: Path) -> None:
    driver = registry.make("redis", {}, Allowance(US)).start(Endpoint("service", web_server.address), 1, tmp_path, 0.5)
    assert driver.wait(60)
    driver.kill()
    with pytest.raises(WorkloadError) as caught:
        driver.requests()
    assert "redis-benchmark ended with 1" in caught.value.details
