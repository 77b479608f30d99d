"""Files of monitoring, as docs/observed.md reads them: a day of a service whose load follows the day and wanders."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

BEGINS = datetime(2026, 11, 24, tzinfo=UTC).timestamp()
ROWS, STEP_S = 1440, 60
CAPACITY = 500.0


def write(folder: Path) -> None:
    """production.csv, range.json and sa24.txt."""
    rows = list(day())
    stamps = [datetime.fromtimestamp(BEGINS + STEP_S * at, UTC) for at in range(ROWS)]
    lines = ["time,load,throughput,response_s,util.cpu,util.disk"]
    text = ["# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle"]
    for at, (stamp, (load, rate, use)) in enumerate(zip(stamps, rows, strict=True)):
        cpu = "" if at % 50 == 1 else f"{use:.4f}"
        lines.append(
            f"{stamp:%Y-%m-%dT%H:%M:%SZ},{load:.2f},{rate:.2f},{0.01 / (1 - use):.5f},{cpu},{0.02 + use / 9:.4f}"
        )
        text.append(
            f"vm;60;{stamp:%Y-%m-%d %H:%M:%S} UTC;-1;{80 * use:.2f};0.00;{20 * use:.2f};0;0;{100 - 100 * use:.2f}"
        )
    (folder / "production.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sa24.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    (folder / "range.json").write_text(json.dumps(matrix(rows)), encoding="utf-8")


def day() -> Iterator[tuple[float, float, float]]:
    """Load, throughput and use of each minute: at most half of the capacity."""
    chance, wander = random.Random(24), 0.0
    for at in range(ROWS):
        wander = 0.98 * wander + chance.gauss(0, 0.03)
        load = CAPACITY * min(max(0.28 - 0.18 * math.cos(2 * math.pi * at / ROWS) + 0.2 * wander, 0.04), 0.55)
        rate = load * math.exp(chance.gauss(0, 0.02))
        yield load, rate, 0.02 + 0.98 * rate / CAPACITY * math.exp(chance.gauss(0, 0.02))


def matrix(rows: list[tuple[float, float, float]]) -> dict[str, object]:
    """The same as Prometheus has it: a gauge, and counters, one of which is reset in the middle."""
    names = ("requests_total", "seconds_sum", "seconds_count", "cpu_seconds_total")
    totals, values = dict.fromkeys(names, 0.0), {name: list[list[object]]() for name in ("jobs_active", *names)}
    for at, (load, rate, use) in enumerate(rows):
        grown = (rate, rate * 0.01 / (1 - use), rate, 4 * use)
        for name, each in zip(names, grown, strict=True):
            totals[name] = (0.0 if name == "requests_total" and at == ROWS // 2 else totals[name]) + STEP_S * each
        stamp = BEGINS + STEP_S * at
        for name, value in {"jobs_active": load, **totals}.items():
            values[name].append([stamp, f"{value:.4f}"])
    result = [{"metric": {"__name__": name, "job": "api"}, "values": values[name]} for name in values]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}
