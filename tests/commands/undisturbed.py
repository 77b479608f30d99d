"""Whole investigations on a machine whose CPUs others may take: one that says so is no test of what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadframe.model import OTHERS

TRIES = 3
BESIDE_OTHERS = "others took the CPU"


def undisturbed(investigate: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer of an investigation that was not disturbed, or of the last of TRIES."""
    answer = investigate()
    for _ in range(TRIES - 1):
        if not _disturbed(answer):
            break
        answer = investigate()
    return answer


def _disturbed(answer: dict[str, Any]) -> bool:
    findings = answer["rounds"][0]["findings"]
    told = [str(finding.get("mechanism") or "") for finding in findings]
    return any(finding["id"] == OTHERS for finding in findings) or any(BESIDE_OTHERS in text for text in told)
