"""Some of the kills of benchmarks/crash.py."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "crash.py"


def _crash() -> ModuleType:
    spec = importlib.util.spec_from_file_location("crash", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["crash"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.server
def test_killed_anywhere_nothing_stays_changed() -> None:
    where, missed = _crash().crash("mariadb", 20, random.Random(), reported=0.1, early=0.6)
    assert not missed
    assert {verb: fell.total() for verb, fell in where.items()} == {"compare": 7, "ladder": 7, "tune": 6}
