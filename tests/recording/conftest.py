"""Examples may take as long as a busy machine makes them: only what comes out counts."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
