"""A count is told in the singular where it is one."""

from __future__ import annotations

import pytest

from loadframe.progress import counted


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [(1, "row", "1 row"), (0, "row", "0 rows"), (1, "process", "1 process"), (2, "process", "2 processes"),
     (1200, "line", "1,200 lines")],
)  # fmt: skip
def test_one_is_singular(count: int, what: str, said: str) -> None:
    assert counted(count, what) == said
