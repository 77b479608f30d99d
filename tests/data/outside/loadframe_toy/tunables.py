"""What a search may vary of the toy server, and how far."""

from __future__ import annotations

from loadframe.kinds.tunable import Tunable

TUNABLES = (Tunable("slots", values=(1, 2, 4, 8, 16)),)
