"""Numbers that a service exposes, read from text of others."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Summary, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from loadframe.formats import exposition
from loadframe.formats.exposition import ExpositionError, Pick, read_json, read_lines, read_prometheus


def registry() -> CollectorRegistry:
    """What a service in Python exposes."""
    own = CollectorRegistry()
    Counter("app_requests", "Requests.", ["path"], registry=own).labels('/a "b"\\\n').inc(7)
    Gauge("app_pool_in_use", "In use.", registry=own).set(3)
    Info("app", "Its version.", registry=own).info({"version": "1"})
    Summary("app_sent_bytes", "Sent.", registry=own).observe(100)
    took = Histogram("app_took_seconds", "Took.", buckets=(0.1, 1), registry=own)
    for seconds in (0.05, 0.5, 2):
        took.observe(seconds)
    return own


EXPECTED = {
    'app_requests_total{path="/a \\"b\\"\\\\\\n"}': 7.0,
    "app_pool_in_use": 3.0,
    "app_sent_bytes_count": 1.0,
    "app_sent_bytes_sum": 100.0,
    'app_took_seconds_bucket{le="0.1"}': 1.0,
    'app_took_seconds_bucket{le="1.0"}': 2.0,
    'app_took_seconds_bucket{le="+Inf"}': 3.0,
    "app_took_seconds_count": 3.0,
    "app_took_seconds_sum": 2.55,
}


@pytest.mark.parametrize("form", ["prometheus", "openmetrics"])
def test_what_prometheus_client_writes_is_read(form: str) -> None:
    data = generate_latest(registry()) if form == "prometheus" else generate_openmetrics(registry())
    found = read_prometheus(data, content_type="text/plain" if form == "prometheus" else OPENMETRICS)
    words = {'app_info{version="1"}': 1.0} if form == "prometheus" else {}  # version 0.0.4 has no type for them
    assert found.values == EXPECTED | words
    assert found.counted == EXPECTED.keys() - {"app_pool_in_use"}
    assert not found.left_out


@given(
    kinds=st.lists(st.sampled_from([Counter, Gauge]), min_size=1, max_size=5),
    label=st.text(max_size=20),
    value=st.floats(0, 1e15),
)
def test_any_label_and_value_come_back(kinds: list[type[Counter] | type[Gauge]], label: str, value: float) -> None:
    own = CollectorRegistry()
    for number, kind in enumerate(kinds):
        one = kind(f"m{number}", "A metric.", ["label"], registry=own).labels(label)
        one.inc(value)
    try:
        data = generate_latest(own)
    except UnicodeEncodeError:  # half a surrogate pair
        return
    found = read_prometheus(data)
    assert len(found.values) + sum(map(len, found.left_out.values())) == len(kinds)
    assert all(one == value for one in found.values.values())


@given(st.one_of(st.text(max_size=300).map(str.encode), st.binary(max_size=300)))
def test_any_text_is_read_or_refused(data: bytes) -> None:
    for content_type in ("", OPENMETRICS):
        try:
            found = read_prometheus(data, content_type=content_type)
        except ExpositionError:
            continue
        assert all(math.isfinite(value) for value in found.values.values())
    for read in (read_json, read_lines):
        try:
            read(data)
        except ExpositionError:
            continue


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<html><body>It works!</body></html>", "HTML"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"in_use": 3}', "not in Prometheus' format"),
        (b"in_use three\n", "not in Prometheus' format"),
        (b'in_use{a="b" 3\n', "not in Prometheus' format"),
    ],
)
def test_what_is_no_metrics_is_refused_in_words(data: bytes, said: str) -> None:
    with pytest.raises(ExpositionError, match=said):
        read_prometheus(data)


def test_what_is_no_number_is_left_out_and_named() -> None:
    data = b'a NaN\nb +Inf\nc 1e300\nd 4\n# TYPE s summary\ns{quantile="0.5"} NaN\ns_count 0\n'
    found = read_prometheus(data)
    assert found.values == {"d": 4.0, "s_count": 0.0}
    assert found.left_out == {"are not finite numbers": ["a", "b", "c"]}, "a summary that has seen nothing says NaN"


def test_of_a_series_that_comes_twice_neither_value_counts() -> None:
    found = read_prometheus(b'a{x="1",y="2"} 1\na{y="2",x="1"} 2\nb 3\n')
    assert found.values == {"b": 3.0}
    assert found.left_out == {"are exposed twice": ['a{x="1",y="2"}']}


@pytest.mark.long
def test_a_million_lines_are_not_read() -> None:
    families = [
        f"# TYPE f{number} gauge\n" + "".join(f'f{number}{{i="{i}"}} 1\n' for i in range(100)) for number in range(500)
    ]
    found = read_prometheus("".join(families).encode(), Pick(first=("f150",)))
    assert len(found.values) == exposition.MOST_SERIES
    assert 'f150{i="99"}' in found.values, "what a limit speaks of is kept"
    assert any(reason.startswith("are behind line") for reason in found.left_out)
    one = "# TYPE f gauge\n" + "".join(f'f{{i="{i}"}} 1\n' for i in range(200_000))
    assert len(read_prometheus(one.encode()).values) == exposition.MOST_SERIES


def test_an_answer_that_was_cut_off_is_refused_where_the_form_shows_it() -> None:
    whole = generate_openmetrics(registry())
    with pytest.raises(ExpositionError, match="EOF"):
        read_prometheus(whole.removesuffix(b"# EOF\n"), content_type=OPENMETRICS)


@pytest.mark.long
def test_lines_that_are_too_long_are_left_out() -> None:
    found = read_prometheus(b'a{x="' + b"y" * 5_000 + b'"} 1\nb 2\n')
    assert found.values == {"b": 2.0}
    assert len(found.left_out) == 1
    found = read_lines(b"a{" + b"y" * 5_000 + b" 1\nb 2\n")
    assert found.values == {"b": 2.0} and list(found.left_out) == [exposition.TOO_LONG]
    many = b'a{x="' + b"\\" * 3_900 + b'"} 1\n'
    with pytest.raises(ExpositionError, match=r"CPU time|format"):
        read_prometheus(many * 2_000 + b'b{x="1"} 1\n')


def test_a_study_selects() -> None:
    data = generate_latest(registry())
    found = read_prometheus(data, Pick(select=("app_took_seconds", "app_pool_in_use")))
    assert set(found.values) == {"app_pool_in_use"} | {name for name in EXPECTED if name.startswith("app_took")}
    labels = b'p{db="a"} 1\np{db="b"} 2\n'
    assert read_prometheus(labels, Pick(select=('p{db="b"}',))).values == {'p{db="b"}': 2.0}


def test_without_a_type_the_study_says_what_is_counted_up() -> None:
    found = read_prometheus(b"jobs 7\nqueue 2\n", Pick(counters=("jobs",)))
    assert found.values == {"jobs_total": 7.0, "queue": 2.0} and found.counted == {"jobs_total"}


def test_numbers_of_json_have_the_names_on_the_way_to_them() -> None:
    document = {
        "pool": {"in_use": 3, "size": 4.0, "open": True, "name": "a"},
        "workers": [{"busy": 1}, {"busy": 0}],
        "": None,
    }
    found = read_json(json.dumps({**document, "done": 9}).encode(), Pick(counters=("done",)))
    assert found.values == {"pool.in_use": 3, "pool.size": 4, "workers.0.busy": 1, "workers.1.busy": 0, "done_total": 9}
    assert found.counted == {"done_total"}


@pytest.mark.parametrize("data", [b"", b"7", b'{"a": NaN}', b"[" * 100_000, b'{"a": ' + b"1" * 5_000 + b"}"])
def test_json_that_is_none_or_too_much_is_refused(data: bytes) -> None:
    with pytest.raises(ExpositionError):
        read_json(data)


def test_a_long_key_over_many_numbers_takes_no_memory() -> None:
    found = read_json(json.dumps({"k" * 1_000_000: list(range(100_000)), "a": 1}).encode())
    assert found.values == {"a": 1.0}


def test_lines_of_name_and_value() -> None:
    found = read_lines(b"# of the pool\nin_use 3\n\nsize\t4e0\nworst nan\n")
    assert found.values == {"in_use": 3.0, "size": 4.0}
    assert found.left_out == {"are not finite numbers": ["worst"]}
    labels = read_lines(b'busy{pool="b",db="a"} 1\nodd{pool=a} 2\n')
    assert labels.values == {'busy{db="a",pool="b"}': 1.0} and [*labels.left_out.values()] == [["odd{pool=a}"]]
    with pytest.raises(ExpositionError, match="line 2"):
        read_lines(b"in_use 3\nin use 4\n")
