"""The contracts of pyproject.toml hold for every kind of server and every workload that there is."""

from __future__ import annotations

import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from loadframe import kinds, workloads

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def members(contract: str) -> set[str]:
    (found,) = (one for one in PYPROJECT["tool"]["importlinter"]["contracts"] if one["name"] == contract)
    assert found["type"] == "independence"
    return set(found["modules"])


def folders() -> set[str]:
    return {f"loadframe.kinds.{one.name}" for one in pkgutil.iter_modules(kinds.__path__) if one.ispkg}


def drivers() -> set[str]:
    names = (f"loadframe.workloads.{one.name}" for one in pkgutil.iter_modules(workloads.__path__))
    return {name for name in names if hasattr(import_module(name), "KIND")}


@pytest.mark.parametrize(
    ("contract", "there"), [("Kinds of servers are siblings", folders()), ("Workloads are siblings", drivers())]
)
def test_every_pair_is_held_apart(contract: str, there: set[str]) -> None:
    assert members(contract) == there
    assert len(there) > 4
