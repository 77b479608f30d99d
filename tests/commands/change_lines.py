"""Records of a change log as the lines of a file."""

from __future__ import annotations

import json
import os

from loadframe_index.entries import Change


def line_of(change: Change) -> bytes:
    """The record as a line, with its end."""
    told = {"number": change.number, "time_s": change.time_s, "kind": change.kind, "path": os.fsdecode(change.path)}
    if change.kind == "rename":
        told["to"] = os.fsdecode(change.to or b"")
    if change.file:
        told["inode"] = int(change.file)
    return json.dumps(told).encode() + b"\n"
