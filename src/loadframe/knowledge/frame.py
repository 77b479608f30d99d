"""The class of work of a program's functions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadframe.knowledge.rows import toml_rows

Scope = Literal["kernel", "user"]

CLASSES: Mapping[str, str] = {
    "running": "running or waiting for a CPU",
    "lock": "locks",
    "condition": "waiting for another thread's signal",
    "reclaim": "memory reclaim and swapping",
    "fault": "page faults",
    "copy": "copying memory",
    "io": "disk I/O and fsync",
    "files": "file system and page cache",
    "network": "network and sockets",
    "timer": "sleeping in a timer",
    "scheduling": "switching threads",
    "allocation": "memory allocation",
    "collecting": "collecting garbage",
    "process": "starting and ending processes",
    "kernel": "other work of the kernel",
    "user": "the program's own code",
    "waiting": "waiting for something else",
}
"""The last three are for stacks that match no row."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """pattern: of whole names. source: where they are defined."""

    class_id: str
    scope: Scope
    pattern: str
    source: str


def frame_rows(file: Path) -> tuple[FrameRow, ...]:
    return tuple(
        FrameRow(row["class"], row["scope"], re.sub(r"\n *", "", "|".join(row["functions"])), row["source"])
        for row in toml_rows(file)["frame"]
    )
