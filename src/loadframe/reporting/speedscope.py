"""Profiles in the format of speedscope, a viewer for profiles in the browser: https://www.speedscope.app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.model import Stack
from loadframe.version import __version__

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass(frozen=True, slots=True)
class TitledStacks:
    """One profile to look at. weight: what one sample stands for: CPU-seconds, or threads on average."""

    title: str
    stacks: Sequence[Stack]
    weight: float
    seconds: bool


def speedscope_json(name: str, profiles: Sequence[TitledStacks]) -> dict[str, Any]:
    """All profiles of a run as one document; equal frames are written once."""
    frames: dict[str, int] = {}
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"loadframe {__version__}",
        "activeProfileIndex": 0,
        "profiles": [_sampled(profile, frames) for profile in profiles],
        "shared": {"frames": [{"name": frame} for frame in frames]},
    }


def _sampled(profile: TitledStacks, frames: dict[str, int]) -> dict[str, Any]:
    weights = [stack.count * profile.weight for stack in profile.stacks]
    return {
        "type": "sampled",
        "name": profile.title,
        "unit": "seconds" if profile.seconds else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in profile.stacks],
        "weights": weights,
    }
