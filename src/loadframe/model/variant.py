"""A way to act on what was proved: which settings, what each load gains by them, and what they give up."""

from __future__ import annotations

from dataclasses import dataclass

from loadframe.model.change import ChangeRecord
from loadframe.model.verdict import Decision, LevelRatio, decide


@dataclass(frozen=True, slots=True)
class LoadGain(LevelRatio):
    """With the 95 % interval of the ratio; low = high = ratio where a state was measured once there."""

    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.decision != "no-proven-difference"

    @property
    def decision(self) -> Decision:
        """As of a verdict."""
        return decide(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Variant:
    """The kept changes up to one that gives more up, from what was found first: `changes` are one for each setting.

    by_load: at every load that both states were measured at, rising. at: the load that the answer is about, one of
    these: the objective's, else the highest. gives_up: the durability that is lost with it, in words; "" for none.
    to_copy: the changes as they are typed in, a line each.
    """

    changes: tuple[ChangeRecord, ...]
    by_load: tuple[LoadGain, ...]
    at: float
    gives_up: str = ""
    to_copy: tuple[str, ...] = ()

    @property
    def gain(self) -> LoadGain:
        """At the load that the answer is about."""
        return next(one for one in self.by_load if one.load == self.at)
