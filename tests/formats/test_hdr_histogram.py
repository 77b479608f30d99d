"""Histograms of other programs: of any layout, read as the library reads them, and bounded."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given
from hypothesis import strategies as st

from loadframe.formats.hdr_histogram import INNER, OUTER, decode


@given(
    st.integers(1, 5),
    st.integers(1, 1000),
    st.integers(10_000, 2**40),
    st.lists(st.integers(1, 10_000), min_size=1, max_size=30),
)
def test_a_histogram_of_any_layout_has_the_values_that_the_library_sees(
    digits: int, lowest: int, highest: int, values: list[int]
) -> None:
    written = HdrHistogram(lowest, highest, digits)
    for value in values:
        written.record_value(value)
    found = decode(written.encode())
    assert found.counts.sum() == len(values)
    unit = 1 << (lowest.bit_length() - 1)
    read = np.repeat(found.middles, found.counts)
    assert read == pytest.approx(np.sort(values).astype(float), rel=10.0**-digits, abs=unit)
    for bin_, middle in zip(found.bins.tolist(), found.middles.tolist(), strict=True):
        low = written.get_value_from_index(bin_)
        assert low <= middle <= written.get_highest_equivalent_value(low)


@given(st.binary(max_size=80), st.integers(0, 6), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@example(b"\x02\x057\x02", 2, 2**58, 2**58)
def test_whatever_stands_in_it_is_counted_or_refused(counts: bytes, digits: int, lowest: int, highest: int) -> None:
    plain = INNER.pack(0x1C849313, len(counts), 0, digits, lowest, highest, 1.0) + counts
    packed = zlib.compress(plain)
    try:
        found = decode(base64.b64encode(OUTER.pack(0x1C849314, len(packed)) + packed))
    except ValueError:
        return
    assert (found.counts > 0).all()
    assert np.isfinite(found.middles).all() and (np.diff(found.middles) > 0).all()


@pytest.mark.parametrize("text", ["", "abc", "AAAA", "\u00e9", "HISTFAAAA"])
def test_what_is_no_histogram_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        decode(text)
