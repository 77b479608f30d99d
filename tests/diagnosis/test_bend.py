"""A bend that a limit explains is told at the limit's load, with both intervals; any other at the knee."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.windows import acts_from, bend_of
from loadframe.model import (
    Bend,
    Curve,
    CurvePoint,
    Finding,
    FindingStatus,
    Limit,
    LoadInterval,
    Peak,
    Round,
    TargetState,
)

CACHE = "mariadb.table_open_cache"
KNEE, FULL = LoadInterval(90, 60, 140), LoadInterval(117, 112, 124)


def finding(name: str = CACHE, at: LoadInterval | None = FULL, status: FindingStatus = "suspected") -> Finding:
    return Finding(name, name, at, (), 0.9, status=status)


def limit(name: str = CACHE) -> Limit:
    return Limit(name, "server", 585, None, 585, 585, 0, False, "", FULL)


def one_round(*findings: Finding, knee: LoadInterval | None = KNEE) -> Round:
    points = tuple(CurvePoint(load, 100.0, 95.0, 105.0, 1.0) for load in (30.0, 60.0, 140.0, 240.0))
    curve = Curve("active_jobs", "A", points, "plateau", Peak(140, 100.0), knee, None, None, None)
    return Round(1, "A", TargetState(), {}, curve, (limit(),), findings, (), (), ())


def test_it_is_told_where_the_limit_begins_to_act() -> None:
    assert bend_of(one_round(finding())) == Bend(FULL, KNEE, CACHE)
    summary = conclusion.summary(one_round(finding(status="confirmed")))
    assert (summary.knee, summary.bend) == (KNEE, Bend(FULL, KNEE, CACHE))


def test_a_cause_behind_the_limit_acts_from_the_same_bend() -> None:
    """Seen: "stops growing at about 1.4 clients" above a chart that bent at 4, where the CPUs were full."""
    behind = finding("postgres.jit", LoadInterval(120, 100, 130), "confirmed")
    assert acts_from(one_round(finding(), behind), behind) == FULL
    assert acts_from(one_round(behind), behind) == KNEE, "without a limit that explains it"
    elsewhere = finding("postgres.jit", LoadInterval(150, 141, 160))
    assert acts_from(one_round(finding(), elsewhere), elsewhere) == elsewhere.reached_at


@pytest.mark.parametrize(
    "one",
    [
        one_round(),
        one_round(finding(), knee=None),
        one_round(finding(at=None)),
        one_round(finding("disk.fsync")),
        one_round(finding("disk.fsync"), finding()),
        one_round(finding(at=LoadInterval(200, 150, 250))),
        one_round(finding(status="refuted")),
    ],
)
def test_where_no_limit_explains_it_there_is_the_knee_alone(one: Round) -> None:
    """Not seen, not placed, no limit, not the first cause, too far away, refuted."""
    assert bend_of(one) is None


def test_a_cause_that_was_refuted_leaves_the_next_one_first() -> None:
    other = replace(finding("disk.fsync"), status="refuted")
    assert bend_of(one_round(other, finding())) == Bend(FULL, KNEE, CACHE)
