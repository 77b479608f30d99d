"""Where each figure comes from: the files of the run folder (docs/run-folder.md), and the command that draws it
again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STEPS = "steps.jsonl"
FILES: Mapping[str, tuple[str, ...]] = {
    "percentiles": (STEPS, "latency"),
    "forecast": ("forecast.json", STEPS),
    "ladder": ("verdicts.json", STEPS),
    "gains": ("verdicts.json", STEPS),
    "limits": (STEPS, "limits.parquet"),
    "waterfall": ("ladder.json", STEPS),
    "trials": ("trials.jsonl", STEPS),
    "flame": ("profiles/steps.jsonl", "profiles"),
}
"""Beginning of a figure's name -> files of the run folder; figures that are not named are drawn from the steps."""
TO = "figures"


@dataclass(frozen=True, slots=True)
class Source:
    """files: of the run folder; folders: of many files. command: draws the figure again, to `drawn`."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    command: str
    drawn: str


def of(figure: str, run: str) -> Source:
    """The source of a figure. run: the path of the run, as a shell takes it."""
    found = next((files for start, files in FILES.items() if figure.startswith(start)), (STEPS,))
    return Source(
        tuple(name for name in found if "." in name),
        tuple(name for name in found if "." not in name),
        f"loadframe report {run} --figures {TO}",
        f"{TO}/{figure}.svg",
    )
