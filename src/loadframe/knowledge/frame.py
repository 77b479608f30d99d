"""The form of what is known of a program's functions: which class of work they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["kernel", "user"]


@dataclass(frozen=True, slots=True)
class FrameRow:
    """Functions of one class. scope: where they run. pattern: of whole names. source: where they are defined."""

    class_id: str
    scope: Scope
    pattern: str
    source: str
