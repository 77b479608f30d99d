"""Recording: a light process writes procfs raw, readers make it into metrics later."""

from __future__ import annotations
