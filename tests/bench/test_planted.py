"""The planted causes are studies that can be carried out, and their score says what was right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planted
from loadframe.bench.checking import check_study
from loadframe.diagnosis.remedies import BUILDERS
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.errors import CageError, MissingTool
from loadframe.ledger.rules import RULES

PLANTED = Path(planted.__file__).parent / "planted"
FILES = sorted(PLANTED.glob("*.toml"))
KNOWN = {rule.id for rule in RULES} | {signature.id for signature in SIGNATURES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_planted_cause_is_a_study_and_names_findings_that_exist(path: Path) -> None:
    one = planted.read(path)
    assert one.study.study.name == one.name
    assert set(one.first) <= KNOWN
    assert bool(one.first) or one.cause == "nothing" or one.strangers
    if one.first and one.status == "confirmed":
        assert any(finding in BUILDERS for finding in one.first), "only a remedy can confirm"
    try:
        check_study(one.study)
    except (CageError, MissingTool) as missing:
        pytest.skip(str(missing))


def test_there_are_enough_of_them() -> None:
    ones = [planted.read(path) for path in FILES]
    assert len([one for one in ones if one.cause != "nothing"]) >= 14
    assert len([one for one in ones if one.cause == "nothing"]) >= 4


def found(*statuses: tuple[str, str], gain: bool = True, flags: dict[str, int] | None = None) -> Any:
    """An investigation with one round of these findings."""

    class Anything:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update(fields)

    findings = [Anything(id=name, status=status) for name, status in statuses]
    return Anything(
        rounds=[Anything(findings=findings, tried=[])],
        gain=object() if gain else None,
        conduct=Anything(flags=flags or {}, steps=10),
    )


Score = Callable[..., Any]


def test_right_first_and_proved() -> None:
    cause = planted.read(PLANTED / "mariadb-cpu-quota.toml")
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "suspected")))
    assert (result.right, result.proved, result.false) == (True, True, ())
    result = planted.score(cause, found(("disk.fsync", "suspected"), ("cage.cpu_quota", "suspected"), gain=False))
    assert (result.right, result.proved, result.false) == (False, False, ())


def test_a_confirmation_of_anything_else_is_false() -> None:
    cause = planted.read(PLANTED / "mariadb-cpu-quota.toml")
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "confirmed")))
    assert result.false == ("disk.fsync",)
    result = planted.score(cause, found(("cage.cpu_quota", "confirmed"), ("disk.fsync", "helped")))
    assert (result.proved, result.false) == (True, ())


def test_where_nothing_is_planted_nothing_may_be_confirmed_or_changed() -> None:
    nothing = planted.read(PLANTED / "nothing-sqlite.toml")
    assert planted.score(nothing, found(("lock.writer", "suspected"), gain=False)).right
    assert not planted.score(nothing, found(("lock.writer", "confirmed"))).right
    assert not planted.score(nothing, found(gain=True)).right


def test_a_disturbance_has_to_be_seen() -> None:
    stranger = planted.read(PLANTED / "mariadb-stranger.toml")
    others = ("cpu.others", "suspected")
    assert planted.score(stranger, found(others, gain=False, flags={"stranger": 9})).right
    assert not planted.score(stranger, found(others, gain=False, flags={"stranger": 2})).right
    assert not planted.score(stranger, found(("lock.row", "suspected"), others, flags={"stranger": 9})).right
