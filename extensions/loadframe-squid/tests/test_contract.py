"""Squid passes the suite that every target passes."""

from __future__ import annotations

import pytest

from loadframe.testing.targets import *  # noqa: F403
from loadframe.testing.targets import Example

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["squid"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def example() -> Example:
    return Example(
        start={"cache_dir_kind": "aufs", "cache_mem": "16M"},
        dynamic={"cache_dir_kind": "aufs", "cache_mem": "8M", "read_ahead_gap": "64k", "collapsed_forwarding": "on"},
        restart={"cache-dir-kind": "rock", "cache_dir_size": "20M", "memory_replacement_policy": "heap lfuda"},
        misspelt=("cache_memory", "cache_mem"),
        wrong={"cache_dir_kind": "disk"},
        impossible={"cache_mem": 10**20 - 1},
    )
