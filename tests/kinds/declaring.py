"""The service of serving.py as a study declares it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadframe.kinds import registry
from loadframe.kinds.kind import KindOfTarget
from loadframe.study.declaration import TargetTable
from readable import readable

SERVING = readable(Path(__file__).with_name("serving.py"))
COMMAND = ["python3", str(SERVING), "--port", "{port}", "--data", "{data}"]
POOL: dict[str, Any] = {
    "values": [2, 4, 32],
    "apply": "environment",
    "name": "POOL",
    "read_back": {"json": "http://127.0.0.1:{port}/config", "field": "pool"},
}
THREADS: dict[str, Any] = {"from": 1, "to": 64, "apply": "argument", "name": "--threads"}
GRAIN: dict[str, Any] = {
    "values": [1, 2, 3],
    "apply": "file",
    "file": str(readable(Path(__file__).with_name("serving.ini"))),
    "key": "serving.grain",
    "restart": False,
}
SERVICE: dict[str, Any] = {
    "kind": "service",
    "command": [*COMMAND, "--config", "{file}"],
    "setting": {"pool": POOL, "threads": THREADS, "grain": GRAIN},
}


def declared_of(kind: str) -> KindOfTarget:
    """What is known of a kind: of a service, of this one."""
    row = registry.kind_named(kind)
    return row if row.declared is None else row.declared(row, TargetTable.model_validate(SERVICE))
