"""A limit that is full is told once, also one that is read more rarely than the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loadframe_watch.model import Model, Sample
from loadframe_watch.records import WatchAlarm

DISK = "disk.space"
HOUR_S = 3600.0


def told(hours: float, reads: Callable[[float], float | None], harm: float | None = None) -> list[WatchAlarm]:
    """The alarms of a watch that samples every ten seconds. reads: the share at a time; None: it is not read then."""
    model, found = Model("jobs", {DISK: "space of a file system"}), []
    for at in range(int(hours * 360)):
        share = reads(10.0 * at)
        use = {} if share is None else {DISK: share}
        harms = {DISK: harm} if harm is not None else {}
        found += model.take(Sample(1e9 + 10.0 * at, {"target.open_files": 9.0}, None, use, harms))
    return found


@pytest.mark.parametrize("every_s", [10, 60, 80, 100])
@pytest.mark.parametrize("phase_s", [0, 30])
def test_what_is_read_rarely_is_told_as_well(every_s: int, phase_s: int) -> None:
    """A file system is looked at once a minute, a dear counter still more rarely: never just when a minute ends."""
    (alarm,) = told(0.5, lambda at: 0.99 if (at - phase_s) % every_s == 0 else None)
    assert (alarm.alarm, alarm.about) == ("limit-reached", DISK)
    minutes = int(str(alarm.evidence[0]["text"]).split()[-2])
    assert minutes == pytest.approx(5 * max(1.0, every_s / 60), abs=1.5)


def test_what_is_full_for_a_moment_only_is_not_told() -> None:
    assert told(1.0, lambda at: 1.0 if at % 120 < 60 else 0.8) == []
    assert told(1.0, lambda at: 1.0, harm=0.0) == []


def test_it_is_told_again_only_once_it_was_over_for_a_day() -> None:
    """A dip of a minute, after days of a full limit, is not its end."""

    def dips(at: float) -> float:
        return 0.5 if 30 * HOUR_S <= at < 30 * HOUR_S + 120 else 1.0

    def ends(at: float) -> float:
        return 0.5 if 30 * HOUR_S <= at < 55 * HOUR_S else 1.0

    assert len(told(60, dips)) == 1
    assert len(told(60, ends)) == 2
