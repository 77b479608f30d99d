"""Some of the kills of benchmarks/crash.py."""

from __future__ import annotations

import random

import pytest

import crash


@pytest.mark.server
def test_killed_anywhere_nothing_stays_changed() -> None:
    where, missed = crash.crash("mariadb", 20, random.Random(), reported=0.1, early=0.6)
    assert not missed
    assert [fell.total() for fell in where.values()] == [5, 5, 5, 5]
