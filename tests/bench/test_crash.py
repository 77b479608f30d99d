"""Some of the kills of benchmarks/crash.py."""

from __future__ import annotations

import random

import pytest

import crash


@pytest.mark.server
def test_killed_anywhere_nothing_stays_changed() -> None:
    where, missed = crash.crash("mariadb", 20, random.Random(), reported=0.1, early=0.6)
    assert not missed
    assert {verb: fell.total() for verb, fell in where.items()} == {"compare": 7, "ladder": 7, "tune": 6}
