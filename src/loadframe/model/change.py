"""The record of a change that is made, from its intent to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.target import Layer, SettingValue

ChangeStatus = Literal["intent", "applied", "failed", "reverted", "left", "ended"]


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One setting that is changed: in the journal of a run, in the state directory while it outlives its command, and
    as the answer to what became of it.

    before: what was there, None where unknown. after: what was asked for, "" for the target's own default.
    read_back: what was in effect when it was last read, None while that is not known. status: intent (on the disk,
    nothing is touched yet), applied, failed (it was not applied, or not put back), reverted (put back, or was back
    already), left (another program has changed it since), ended (with its private target). because: of the status, in
    words. id: its number in the journal of its run, 0 outside of it. place: how another command finds it again, words:
    the same for people; both empty for a private target, whose kind is `target`. finding, remedy: the ids of the causes
    and the title of what was tried against them, both empty where the study itself asks for the change; why: in words.
    """

    setting: str
    before: SettingValue | None
    after: SettingValue | None
    read_back: SettingValue | None = None
    status: ChangeStatus = "intent"
    because: str = ""
    id: int = 0
    place: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    target: str = ""
    layer: Layer = "server"
    treatment: str = ""
    finding: str = ""
    remedy: str = ""
    why: str = ""
    private: bool = False
    at: str = ""

    def __str__(self) -> str:
        return f"{self.setting} of {self.words}: {self.because}"
