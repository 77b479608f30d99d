"""The toy server as data: its settings, what a search may vary of them, and its counters."""

from __future__ import annotations

from loadframe.kinds.catalogue import Catalogue, SettingSpec, Tunable
from loadframe.model import CounterSpec

CATALOGUE = Catalogue(
    "toy",
    (
        SettingSpec("slots", "integer", False, 1, 64, (), 1, source="server.py"),
        SettingSpec("delay_ms", "integer", False, 0, 1000, (), 20, source="server.py"),
    ),
    "slots and delay_ms",
)
TUNABLES = (Tunable("slots", values=(1, 2, 4, 8, 16)),)
COUNTERS = (
    CounterSpec("served", "toy.requests", cumulative=True),
    CounterSpec("waited", "toy.waited", cumulative=True),
    CounterSpec("most", "toy.slots_used", cumulative=False),
    CounterSpec("slots", "toy.slots", cumulative=False),
)
"""As the server tells them, in this order."""
