"""Leases and servers for the tests of this extension."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.testing.leases import lease as lease
from loadframe.testing.leases import scratch as scratch
from loadframe_caches.nginx.kind import NginxTarget


@pytest.fixture
def nginx(lease: Lease) -> Iterator[NginxTarget]:
    """An nginx, created and not started."""
    target = NginxTarget(lease=lease, resources=Resources())
    target.create()
    yield target
    target.destroy()
