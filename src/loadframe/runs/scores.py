"""The scores of all forecasts made on this machine, one per line, in Loadframe's state directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from loadframe.errors import RunError
from loadframe.host.state import Damaged, read_file
from loadframe.model import Scored
from loadframe.runs.formats import decode, encode
from loadframe.system.files import Folder, Whose

FILE = "forecast-scores.jsonl"
MOST_BYTES = 50_000_000
"""A quarter of a million scores."""


@dataclass(frozen=True, slots=True)
class Score:
    """source: what the forecast was made from; at: when it was scored, UTC."""

    source: str
    at: str
    score: Scored


def add(folder: Path, source: str, scores: Sequence[Scored]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lines = b"".join(encode("score", Score(source, now, score)) + b"\n" for score in scores)
    try:
        Folder(folder, Whose.OURS).append(FILE, lines)
    except (OSError, RunError) as error:
        why = error.fact if isinstance(error, RunError) else error.strerror or error
        raise RunError(f"{folder / FILE} cannot be written: {why}", remedy="Set LOADFRAME_STATE.") from error


def read(folder: Path) -> list[Scored]:
    """Every score, once per forecast of the same measurement, without a torn last line. RunError."""
    path = folder / FILE
    try:
        text = read_file(path, MOST_BYTES)
    except FileNotFoundError:
        return []
    except Damaged as error:
        raise RunError(f"{path} cannot be read: {error}", remedy="Check the file, or remove it.") from error
    scores: dict[tuple[str, float, float], Scored] = {}
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        scored = decode("score", line.encode(), Score, where=f"{path}, line {number}")
        scores[scored.source, scored.score.load, scored.score.actual] = scored.score
    return list(scores.values())
