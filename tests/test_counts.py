"""A count is told in the singular where it is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.formats.observed import import_observed
from loadframe.progress import counted
from loadframe_watch.journal import lost_lines


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [(1, "row", "1 row"), (0, "row", "0 rows"), (1, "process", "1 process"), (2, "process", "2 processes"),
     (1200, "line", "1,200 lines")],
)  # fmt: skip
def test_one_is_singular(count: int, what: str, said: str) -> None:
    assert counted(count, what) == said


def test_of_what_is_left_out_too(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("time,load,throughput\n1,2,3\n1,2,3\n2,-2,3\n,4,5\n", encoding="utf-8")
    assert import_observed(str(file)).notes == (
        "1 row with the time of another one left out.",
        "1 row without a time left out.",
        "1 value of the load below zero or beyond all measure left out.",
    )
    assert lost_lines(1, 0.0, 1.0).words.startswith("1 line could")
