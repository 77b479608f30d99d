"""The curves of real servers: python benchmarks/server_curves.py --role library [--only NAME ...] | --calibrate

Measures the studies of server_curves.toml that have this role, one after the other, and writes what every window
showed: throughput, utilisations, p95 latency, and the limits of the ledger that the windows up to each level tell of,
with the load at which they run out. A file that is there already keeps the curves that were not measured again. A study
that fails is named, and the others go on; then it ends with 1. Without --out, the role library goes to
library_curves.json beside this file. --only names studies or kinds of server.

--calibrate works out again what forecasts from these curves and the published ones (published_curves.json) come to: the
package's calibration.json, by which candidates are weighed and intervals made.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

import forecast_library
import loadframe
from loadframe.errors import UserError
from loadframe.experiments.reading import state_up_to
from loadframe.prediction import library, resources

STUDIES = Path(__file__).with_name("server_curves.toml")
MEASURE = {"window": "600ms", "blocks": {"min": 2, "max": 2}, "budget": "40s", "profile": "off"}
CURVES = Path(__file__).with_name("library_curves.json")
DIGITS = 5


def declared(role: str, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The studies of a role, as study files have them. only: names of studies, or kinds of server; all without."""
    text = tomllib.loads(STUDIES.read_text())
    found = []
    for one in text["curve"]:
        if one["role"] == role and (not only or {one["name"], one["target"]["kind"]}.intersection(only)):
            load = {**one["load"], "levels": text["levels"][one["load"]["levels"]]}
            body = {key: one[key] for key in ("target", "cage", "workload") if key in one}
            about = {"name": one["name"], "question": "What does each load give?"}
            found.append({"study": about, **body, "load": load, "measure": MEASURE})
    return found


def names(declaration: Mapping[str, Any]) -> tuple[str, str]:
    """What --only may call a study: its name, or its kind of server."""
    return declaration["study"]["name"], declaration["target"]["kind"]


def measured(declaration: Mapping[str, Any], runs: Path) -> dict[str, Any]:
    """One curve: rows of (load, throughput, utilisations, p95 latency in ms), servers and ceilings of the resources,
    limits by the highest level that they were read from."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(tomli_w.dumps(dict(declaration)))
        run = loadframe.open_run(loadframe.measure(loadframe.load_study(path), runs).run)
    case = loadframe.conclude(run)
    axis = declaration["load"]["axis"]
    seen = resources.observe(case.state("A").steps, name=declaration["study"]["name"], axis=axis)
    limits = {}
    for level in seen.loads:
        limits[f"{level:g}"] = [
            {"id": one.id, "load": _short(one.exhausted_at.load), "binds": library.binds(one)}
            for one in state_up_to(run, case, "A", level).limits
            if one.exhausted_at is not None
        ]
    return {
        "kind": declaration["target"]["kind"],
        "axis": axis,
        "servers": dict(seen.servers),
        "ceilings": sorted(seen.ceilings),
        "rows": [
            [
                row.load,
                _short(row.throughput),
                {name: _short(used) for name, used in row.utilizations.items()},
                None if row.latency_p95_ms is None else _short(row.latency_p95_ms),
            ]
            for row in sorted(seen.rows, key=lambda row: row.load)
        ],
        "limits": limits,
    }


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def measuring(declarations: Sequence[Mapping[str, Any]], runs: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """(name, curve) of each study as soon as it was measured, told on stderr with its seconds; a study that fails is
    named there and has None."""
    for number, declaration in enumerate(declarations, 1):
        name, started = declaration["study"]["name"], time.monotonic()
        try:
            curve, said = measured(declaration, runs), ""
        except UserError as error:
            curve, said = None, f": {error}"
        words = f"{len(curve['rows'])} windows" if curve else "failed"
        taken = time.monotonic() - started
        print(f"{number} of {len(declarations)} {name}: {words}, {taken:.0f} s{said}", file=sys.stderr, flush=True)
        yield name, curve


def write(path: Path, curves: Mapping[str, Any]) -> None:
    """One curve a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(curve, separators=(',', ':'))}" for name, curve in curves.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", choices=["library", "held", "fresh", "later"], default="library")
    parser.add_argument("--out", type=Path, default=CURVES)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    if arguments.calibrate:
        Path(library.__file__).with_name(library.FILE).write_text(
            forecast_library.as_json(forecast_library.build(forecast_library.curves()))
        )
        return 0
    loadframe.sweep_leftovers()
    curves = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    failed = 0
    for name, curve in measuring(declared(arguments.role, arguments.only), arguments.runs):
        if curve is None:
            failed += 1
        else:
            curves[name] = curve
            write(arguments.out, curves)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
