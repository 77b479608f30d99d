"""Some of the kills of benchmarks/crash.py."""

from __future__ import annotations

import random

import pytest

import crash


@pytest.mark.long
@pytest.mark.server
def test_killed_anywhere_nothing_stays() -> None:
    found = crash.crash(8, random.Random(), targets=("sqlite", "attached mariadb"), reported=0.2, early=0.6)
    assert [words for tally in found.values() for words in tally.missed] == []
    assert sum(tally.kills for tally in found.values()) == 8
