"""loadframe doctor: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import loadframe
from loadframe.cli.common import Json, command
from loadframe.cli.terminal import answer, emit
from loadframe.machine import examine


def doctor(as_json: Json = False) -> None:
    """Check this machine: its servers and load drivers, what can be recorded, what can be limited."""
    with command(as_json):
        rows = examine()
        if as_json:
            facts = [
                {"part": row.kind, "what": row.what, "found": row.found, "how_to_get_it": row.how_to_get_it}
                for row in rows
            ]
            emit({"schema": "loadframe.doctor/1", "version": loadframe.__version__, "checks": facts})
            return
        width = max(len(row.what) for row in rows)
        for row in rows:
            mark = "ok     " if row.found else "MISSING"
            answer(f"{mark} {row.kind:18} {row.what:{width}}  {row.found or row.how_to_get_it}")
