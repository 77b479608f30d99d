"""Lines of a watch, one of each kind that is exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    at_s: float = 1764000000.0


SEEN = [
    Line("head", {"schema": "loadframe.watch/1", "subject": 'pid 4711 "shop"', "load": "target.connections"}),
    Line("target", {"pids": [4711], "words": "there"}),
    Line("sample", {"load": 3, "values": {"target.cpu.cores": 0.25}, "use": {"process.open_files": 0.1}}, 1764000010.0),
    Line("sample", {"load": 4, "throughput": 12.5, "values": {"target.cpu.cores": 0.5}, "use": {}}, 1764000020.0),
    Line("unit", {"response_s": 0.125, "error": "", "load": 4}),
    Line(
        "model",
        {
            "limits": [
                {"id": "process.open_files", "at_load": {"load": 80.0, "low": 70.0, "high": 95.0}, "at_s": None},
                {"id": "memory", "at_load": None, "at_s": {"value": 1764003600.0, "low": 1.0, "high": 2.0}},
            ],
            "bend": {"load": 55.0, "low": 50.0, "high": 60.0, "words": ""},
            "leaks": [{"metric": "target.memory", "ends_s": {"value": 1764007200.0}}],
        },
    ),
    Line("alarm", {"alarm": "leak"}, 1764000030.0),
    Line("alarm", {"alarm": "leak"}, 1764000040.0),
    Line("cost", {"cpu_s": 1.0, "children_cpu_s": 1.0, "elapsed_s": 4000.0, "rss_bytes": 30_000_000}),
    Line("a kind of a later version", {"x": 1}),
]
