"""Leases for the tests of this extension."""

from loadframe.testing.leases import lease as lease
from loadframe.testing.leases import scratch as scratch
