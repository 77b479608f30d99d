"""The machine, as far as it matters for the numbers; and the scores of all forecasts made on it, one per line, in
Loadframe's state directory."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from loadframe.cages.groups import text
from loadframe.errors import RunError
from loadframe.host.state import Damaged, read_file
from loadframe.model import Host, Scored
from loadframe.runs.formats import decode, encode
from loadframe.system.files import Folder, Whose


def read_host(root: Path = Path("/")) -> Host:
    cpuinfo = text(root / "proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", text(root / "proc/meminfo"), re.M)
    huge = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    release = re.search(r'^PRETTY_NAME="?([^"\n]+)', text(root / "etc/os-release"), re.M)
    facts = {
        "system": release[1] if release else "",
        "governor": text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
        "huge pages": huge[1] if huge else "",
        "python": platform.python_version(),
    }
    return Host(
        hostname=text(root / "proc/sys/kernel/hostname").strip(),
        kernel=text(root / "proc/sys/kernel/osrelease").strip(),
        cpu_model=model[1].strip() if model else platform.machine(),
        cpus=len(os.sched_getaffinity(0)) if root == Path("/") else len(re.findall(r"^processor", cpuinfo, re.M)),
        memory_bytes=int(memory[1]) * 1024 if memory else 0,
        virtualisation="virtual machine" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.M) else "none seen",
        facts={name: value for name, value in facts.items() if value},
    )


SCORES = "forecast-scores.jsonl"
MOST_SCORES_BYTES = 50_000_000
"""A quarter of a million scores."""


@dataclass(frozen=True, slots=True)
class Score:
    """source: what the forecast was made from; at: when it was scored, UTC."""

    source: str
    at: str
    score: Scored


def add_scores(folder: Path, source: str, scores: Sequence[Scored]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lines = b"".join(encode("score", Score(source, now, score)) + b"\n" for score in scores)
    try:
        Folder(folder, Whose.OURS).append(SCORES, lines)
    except (OSError, RunError) as error:
        why = error.fact if isinstance(error, RunError) else error.strerror or error
        raise RunError(f"{folder / SCORES} cannot be written: {why}", remedy="Set LOADFRAME_STATE.") from error


def read_scores(folder: Path) -> list[Scored]:
    """Once per forecast of the same measurement, without a torn last line. RunError."""
    path = folder / SCORES
    try:
        text = read_file(path, MOST_SCORES_BYTES)
    except FileNotFoundError:
        return []
    except Damaged as error:
        raise RunError(f"{path} cannot be read: {error}", remedy="Check the file, or remove it.") from error
    scores: dict[tuple[str, float, float], Scored] = {}
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        scored = decode("score", line.encode(), Score, where=f"{path}, line {number}")
        scores[scored.source, scored.score.load, scored.score.actual] = scored.score
    return list(scores.values())
