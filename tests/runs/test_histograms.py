"""A histogram of latencies reads back as the library wrote it; one from a stranger takes no more memory than ours."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadframe.errors import RunError
from loadframe.formats.hdr_histogram import INNER, OUTER
from loadframe.runs.folder import RunFolder
from loadframe.runs.histograms import (
    BINS,
    LONGEST_LATENCY_US,
    MOST_PLAIN_BYTES,
    bin_latencies_ms,
    histogram_log,
    read_counts,
)

from .test_folder import a_step

LATENCIES_US = st.lists(st.integers(1, LONGEST_LATENCY_US), max_size=60)


def log_of(plain: bytes) -> bytes:
    packed = zlib.compress(plain)
    return b"0.1,1.0,1.0," + base64.b64encode(OUTER.pack(0x1C849314, len(packed)) + packed)


def header(*, digits: int = 3, longest: int = LONGEST_LATENCY_US, cookie: int = 0x1C849313) -> bytes:
    return INNER.pack(cookie, 0, 0, digits, 1, longest, 1.0)


def test_the_bins_are_the_library_s() -> None:
    whole = HdrHistogram(1, LONGEST_LATENCY_US, 3)
    assert whole.counts_len == BINS
    for at in (1, 2047, 2048, 2049, 5000, BINS - 1):
        lowest = whole.get_value_from_index(at)
        middle = (lowest + whole.get_highest_equivalent_value(lowest) + 1) // 2
        assert bin_latencies_ms()[at] == middle / 1000


@settings(max_examples=50)
@given(latencies_us=LATENCIES_US)
def test_what_was_written_is_read_as_counts(latencies_us: list[int]) -> None:
    values = (np.array(latencies_us) / 1000).astype(np.float32)
    counts = read_counts(histogram_log(a_step(1), values).encode())
    assert counts.shape == (BINS,) and counts.sum() == len(values)
    read = np.repeat(bin_latencies_ms(), counts)
    assert read == pytest.approx(np.sort(values.astype(np.float64)), rel=0.001, abs=0.0006)


def test_histograms_of_two_steps_add_up_to_that_of_both() -> None:
    chance = np.random.default_rng(1)
    parts = [chance.lognormal(0, 2, size).astype(np.float32) for size in (5000, 300)]
    one, two, both = (read_counts(histogram_log(a_step(1), part).encode()) for part in (*parts, np.concatenate(parts)))
    assert (one + two == both).all()


def test_a_step_is_read_by_its_number_and_none_is_none(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "farm")
    run.add_step(a_step(3), b"", np.array([1.5, 1.5, 20.0], dtype=np.float32))
    counts = run.latency_counts(3)
    assert counts is not None and counts[counts > 0].tolist() == [2, 1]
    assert run.latency_counts(4) is None
    (run.path / "latency" / "step-00003.hlog").write_text("#\n0,1,1,!!\n")
    with pytest.raises(RunError, match=r"step-00003\.hlog is not a histogram of latencies"):
        run.latency_counts(3)


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"#\nx\ny\n",
        b"0,1,1,",
        b"0,1,1,AAAA",
        b"0,1,1," + base64.b64encode(OUTER.pack(0x1C849314, 4) + b"zlib"),
        log_of(b""),
        log_of(header(cookie=1)),
        log_of(header(digits=5)),
        log_of(header(longest=2**62)),
        log_of(header() + b"\x02"),
        log_of(header() + b"\x01\x80"),
        log_of(header() + b"\x01" + b"\x80" * 9 + b"\x01"),
        log_of(header() + b"\x01" + b"\x02" * BINS),
        log_of(header() + b"\x01" + b"\xfe\xff\xff\xff\xff\x7f"),
        log_of(header() + b"\xff\xff\xff\x7f"),
        log_of(header() + bytes(MOST_PLAIN_BYTES)),
    ],
)
def test_what_is_no_histogram_of_ours_is_refused(log: bytes) -> None:
    with pytest.raises(ValueError):
        read_counts(log)


def test_a_small_log_that_grows_large_is_not_unpacked() -> None:
    bomb = log_of(header() + bytes(1 << 26))
    assert len(bomb) < 1 << 20
    with pytest.raises(ValueError, match="larger than a histogram can be"):
        read_counts(bomb)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(plain=st.binary(max_size=60))
def test_whatever_stands_in_it_is_counted_or_refused(plain: bytes) -> None:
    try:
        counts = read_counts(log_of(header() + plain))
    except ValueError:
        return
    assert counts.shape == (BINS,) and (counts >= 0).all()
