"""A page that is read again and again says what it says to who reads it for the first time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, generate_latest

from loadframe.formats.exposition import ExpositionError, Page, Pick, read_prometheus

PAGE = """# HELP app_requests_total Requests.
# TYPE app_requests_total counter
app_requests_total{path="/a b",code="200"} 7
app_requests_total{path="}\\"{ #"} 8
# TYPE hits counter
hits 3

# TYPE took histogram
took_bucket{le="0.1"} 1
took_bucket{le="+Inf"} 2
took_sum 0.3
took_count 2
# TYPE waits summary
waits{quantile="0.5"} NaN
waits_sum 0
waits_count 0
plain_total 5
"""


def same(page: Page, text: str) -> None:
    """Both readers say the same of it, or refuse it."""
    data = text.encode()
    try:
        wanted = read_prometheus(data)
    except ExpositionError:
        with pytest.raises(ExpositionError):
            page.read(data)
        return
    found = page.read(data)
    assert (dict(found.values), found.counted) == (dict(wanted.values), wanted.counted)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('code="200"} 7', 'code="200"} 9.5e3'),
        ('quantile="0.5"} NaN', 'quantile="0.5"} 0.25'),
        ("hits 3", "hits NaN"),
        ("hits 3", "hits 1e300"),
        ("hits 3", "hits 1_0"),
        ("hits 3", "hits"),
        ("hits 3", "hits x"),
        ("hits 3", "hits 4 1700000000000"),
        ("hits 3", "misses 3"),
        ("hits counter", "hits gauge"),
        ("\n\n", "\nmore\n"),
        ("\n\n", "\n3\n"),
        ("plain_total 5\n", "plain_total 5"),
        ("plain_total 5\n", "plain_total 5\nplain_total 6\n"),
        ("plain_total 5", "plain_total 5\r"),
        ("plain_total 5", "plain_total  5"),
        ("took_sum 0.3\n", ""),
        ('le="0.1"} 1', 'le="0.1"} 1 # {trace="x"} 0.05'),
    ],
)
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_it_says_what_a_first_reading_says(old: str, new: str, times: int) -> None:
    """After whatever number of readings of the page something in it is another; and then it is as it was."""
    page = Page(Pick())
    changed = PAGE.replace(old, new)
    assert changed != PAGE
    for text in (*[PAGE] * times, *[changed] * 4, PAGE, changed):
        same(page, text)


@given(
    names=st.lists(st.sampled_from(["a", "b_total", "c_sum", "hits"]), min_size=1, max_size=4),
    labels=st.text(alphabet='x}{" \\#=,', max_size=8),
    values=st.lists(st.sampled_from(["1", "2.5", "NaN", "1e99", "5 7", '} 5"', "1 # {} 2"]), min_size=4, max_size=4),
)
def test_any_line_is_read_as_by_a_first_reading(names: list[str], labels: str, values: list[str]) -> None:
    page = Page(Pick())
    for first in (0, 0, 0, 1, 2, 3):
        lines = [f'{name}{{l="{labels}"}} {values[(first + at) % 4]}' for at, name in enumerate(names)]
        same(page, "\n".join([*lines, f"z {values[first]}"]))


def test_what_prometheus_client_writes_is_read_again_and_picked() -> None:
    own = CollectorRegistry()
    requests = Counter("app_requests", "Requests.", ["path"], registry=own)
    pool = Gauge("app_pool_in_use", "In use.", registry=own)
    Summary("app_sent_bytes", "Sent.", registry=own).observe(100)
    took = Histogram("app_took_seconds", "Took.", registry=own)
    pick = Pick(select=("app_requests", "app_pool_in_use"), counters=("app_pool_in_use",))
    page, some = Page(Pick()), Page(pick)
    for number in range(6):
        requests.labels('/a "b"\\\n').inc(number)
        pool.set(number / 3)
        took.observe(number)
        data = generate_latest(own)
        for one, which in ((page, Pick()), (some, pick)):
            found, wanted = one.read(data), read_prometheus(data, which)
            assert (dict(found.values), found.counted) == (dict(wanted.values), wanted.counted)


def test_the_third_reading_is_cheap() -> None:
    text = "".join(f'a_total{{path="/{number}",code="200"}} {number}\n' for number in range(1500)).encode()
    page, took_s = Page(Pick()), []
    for _ in range(4):
        before_s = time.thread_time()
        assert len(page.read(text).values) == 1500
        took_s.append(time.thread_time() - before_s)
    assert took_s[3] < took_s[0] / 5
