"""The clock of a driver of the user's own: CLOCK_MONOTONIC, the time of day, or one whose zero it tells. What fits none
of them is refused in words: times that are guessed would put requests into windows in which they were not."""

import time
from dataclasses import dataclass
from typing import Self

SLACK_S = 0.05
"""Between the clock that is read before a program is started and the program's own first look at it."""
STEPPED_S = 0.02
"""The time of day was set where its distance from CLOCK_MONOTONIC changes by more."""
EPOCH_S = 1e9
"""The time of day is beyond this since 2001, and no machine is up for 31 years."""
UNITS = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
ADVICE = "print seconds of CLOCK_MONOTONIC (Python: time.monotonic()), or of the time of day"


class ClockError(ValueError):
    """Why times cannot be those of the step, in words."""


@dataclass(frozen=True)
class Instant:
    """One look at both clocks. day_s: of the time of day."""

    monotonic_s: float
    day_s: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.monotonic(), time.time())

    @property
    def apart_s(self) -> float:
        """CLOCK_MONOTONIC minus the time of day."""
        return self.monotonic_s - self.day_s


@dataclass(frozen=True)
class Life:
    """When a driver was started, and when it was seen to have ended."""

    started: Instant
    ended: Instant

    @property
    def length_s(self) -> float:
        return self.ended.monotonic_s - self.started.monotonic_s


def offset_s(life: Life, first_s: float, last_s: float, zero_s: float | None, slack_s: float = SLACK_S) -> float:
    """What is added to a driver's times to make them CLOCK_MONOTONIC's. first_s, last_s: the earliest and the latest of
    them; zero_s: the instant at which its clock showed 0, where it tells one. slack_s: how far they may lie outside of
    its life. ClockError."""
    if zero_s is not None:
        offset = zero_s + (_from_day(life) if zero_s >= EPOCH_S else 0.0)
        if why := _outside(life, first_s + offset, last_s + offset, slack_s):
            raise ClockError(f"with its zero at {zero_s:.3f} {why}")
        return offset
    if not _outside(life, first_s, last_s, slack_s):
        return 0.0
    if first_s >= EPOCH_S / 2:
        offset = _from_day(life)
        if not _outside(life, first_s + offset, last_s + offset, slack_s):
            return offset
    raise ClockError(_told(life, first_s, last_s, slack_s))


def _from_day(life: Life) -> float:
    """From the time of day to CLOCK_MONOTONIC. ClockError where the time of day was set meanwhile."""
    stepped_s = life.ended.apart_s - life.started.apart_s
    if abs(stepped_s) > STEPPED_S:
        raise ClockError(
            f"the time of day was set by {-stepped_s:+.3f} s during the step, and the driver's times are of it; "
            "print seconds of CLOCK_MONOTONIC"
        )
    return life.started.apart_s


def _outside(life: Life, first_s: float, last_s: float, slack_s: float) -> str:
    """How times lie outside of the driver's life; "" where they do not."""
    before_s, after_s = life.started.monotonic_s - first_s, last_s - life.ended.monotonic_s
    if before_s > slack_s:
        return f"its first request ended {before_s:.3g} s before the driver was started"
    if after_s > slack_s:
        return f"its last request ended {after_s:.3g} s after the driver itself: its clock runs fast"
    return ""


def _told(life: Life, first_s: float, last_s: float, slack_s: float) -> str:
    for name, offset in (("CLOCK_MONOTONIC", 0.0), ("the time of day", life.started.apart_s)):
        for scale, unit in UNITS.items():
            if not _outside(life, first_s / scale + offset, last_s / scale + offset, slack_s):
                return f"its times ({first_s:.6g} to {last_s:.6g}) are {name} in {unit}; print seconds"
    for name, offset in (("CLOCK_MONOTONIC", 0.0), ("the time of day", life.started.apart_s)):
        ended = life.ended.monotonic_s + slack_s
        if life.started.monotonic_s - slack_s <= first_s + offset <= ended or (
            life.started.monotonic_s <= last_s + offset <= ended
        ):
            why = _outside(life, first_s + offset, last_s + offset, slack_s)
            return f"its times are of {name}, and {why}"
    if first_s >= 0 and last_s <= 2 * life.length_s + 10:
        return (
            f"its times ({first_s:.6g} to {last_s:.6g}) are of a clock of its own that begins near 0. Print "
            '{"zero": SECONDS} as the first line, where SECONDS is CLOCK_MONOTONIC or the time of day when that clock '
            f"showed 0; or {ADVICE}"
        )
    return (
        f"its times ({first_s:.6g} to {last_s:.6g}) are of no clock of this machine: CLOCK_MONOTONIC went from "
        f"{life.started.monotonic_s:.3f} to {life.ended.monotonic_s:.3f}, the time of day from "
        f"{life.started.day_s:.3f} to {life.ended.day_s:.3f}; {ADVICE}"
    )
