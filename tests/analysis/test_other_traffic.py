"""What a link carried beside a load: known to bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_fleet.bench import other_traffic


@given(
    answers=st.integers(1, 5000), body=st.integers(0, 60_000), header=st.integers(17, 1000), frame=st.integers(54, 106),
    packets=st.integers(1, 40), others=st.integers(0, 10**9), seconds=st.floats(0.5, 60),
)  # fmt: skip
def test_what_others_sent_lies_within_the_bounds(
    answers: int, body: int, header: int, frame: int, packets: int, others: int, seconds: float
) -> None:
    load = answers * (body + header + packets * frame)
    found = other_traffic(seconds, load + others, answers * packets, answers * body, answers, 3.0)
    true = others / seconds
    others_bytes, error = found.others_bytes_per_s, found.error_bytes_per_s
    assert others_bytes - error - 1e-6 * true <= true <= others_bytes + error + 1 + 1e-6 * true


def test_of_large_answers_little_is_unsure() -> None:
    found = other_traffic(10.0, 60_000_000, 1_000, 50_000_000, 50, 2.0)
    assert found.others_bytes_per_s == pytest.approx(1e6, rel=0.02)
    assert found.error_bytes_per_s == pytest.approx(2e5, rel=0.1)


def test_no_more_is_said_of_others_than_nothing_where_the_load_explains_it() -> None:
    found = other_traffic(10.0, 50_100_000, 1_000, 50_000_000, 50, 2.0)
    assert 0 < found.others_bytes_per_s <= found.error_bytes_per_s


def test_nothing_is_carried_in_no_time() -> None:
    with pytest.raises(ValueError, match="0"):
        other_traffic(0.0, 1, 1, 1, 1, 1)
