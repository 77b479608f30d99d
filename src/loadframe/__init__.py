"""Loadframe loads a real server step by step until it bends, and says what gave."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Imported on first use: worker processes and the recorder start from this package and must stay light.
_API = {}


def __getattr__(name: str) -> Any:
    if name in _API:
        return getattr(import_module(_API[name]), name)
    raise AttributeError(f"module 'loadframe' has no attribute {name!r}")
