"""Forecasts against a known truth: python benchmarks/forecasts.py [--systems N] [--latency N] | --live | --later

Simulated systems (forecast_systems.py) are measured up to a quarter of the load at which they saturate, and forecast
up to four times that load. A row is what came of it:

    error      median of |forecast / measured - 1|; for saturation and capacity, against the truth
    inside     how many of the 90 % intervals held, which should be 85 to 95 %
    width      median width of an interval, as a share of the forecast

`hidden` systems have a bottleneck that no utilisation tells of, seen as a throughput that stops growing; `idle` ones
have resources that do not follow the load. Of both no most may be told (`refused`). A limit of the ledger that runs out
first must be what gives first, and end the growth. p95 latencies are compared with those of a
discrete-event simulation of such networks.

--live is the headline: it measures the 18 studies of server_curves.toml that nothing was built on (nginx, a kind of
server that was held out whole, and other settings of the library's kinds), in about 15 minutes, and forecasts each
without any curve of its own kind; forecast_claims.py says how, and prints the rivals beside it. Nothing is simulated
then. --later measures the 14 studies that were written after the model had its last change, so that nobody had seen
their curves. --only takes names of studies or kinds of server; --save keeps every curve in a file as soon as it was
measured, and those that are there are not measured again. --recorded FILE... forecasts curves from such a file.
--library does it with the library's own curves, --published with what others published, which have no utilisations.

Simulated systems are there to find faults, not to claim anything: the intervals come from real servers, which are less
regular than any simulation, so they hold more often there. It ends with 1 where a goal is missed: simulated, a median
error of at most 10 %, at least 85 % of the intervals held, no most below what was seen, no end of an interval above the
rate that is offered, no most where none may be told, every limit of the ledger named and kept; of real servers, 85 to
95 % held, an error of at most that of the better of the scalability law and the straight line, no most that lies below
what was seen, and every study measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import forecast_claims
import forecast_library
import forecast_systems
import server_curves
from forecast_library import Curve

ROLES = ("held", "fresh")
"""Of the studies that --live measures."""
LATER = ("later",)
"""Of those that --later measures."""


def faultless(systems: int) -> bool:
    """Print the faults of systems that have a limit of the ledger, or whose most must not be told; whether none was."""
    passed = forecast_systems.limits_passed(systems)
    print(f"{'limit of the ledger':34} {systems:>9} {passed} not named, or passed", flush=True)
    told = {name: forecast_systems.most_told(name, systems) for name in ("hidden", "idle")}
    for name, count in told.items():
        print(f"{name:34} {systems:>9} {count} whose most was told", flush=True)
    return not passed and not any(told.values())


def real(curves: Sequence[Curve], *, alone: bool = False) -> bool:
    """Print what forecasts of real servers came to; whether the goals are met."""
    outcomes = [forecast_claims.judge(curve, alone=alone) for curve in curves]
    print("\n".join(forecast_claims.table(outcomes)), flush=True)
    return forecast_claims.met(outcomes)


def live(runs: Path, roles: Sequence[str], only: Sequence[str], save: Path | None) -> tuple[list[Curve], int]:
    """The studies of these roles, measured now, and how many failed. save: where curves are kept."""
    import loadframe

    loadframe.sweep_leftovers()
    wanted = [one for role in roles for one in server_curves.declared(role, only)]
    kept: dict[str, Any] = json.loads(save.read_text()) if save is not None and save.exists() else {}
    missing = [one for one in wanted if one["study"]["name"] not in kept]
    failed = 0
    for name, curve in server_curves.measuring(missing, runs):
        if curve is None:
            failed += 1
            continue
        kept[name] = curve
        if save is not None:
            server_curves.write(save, kept)
    names = [one["study"]["name"] for one in wanted]
    return [forecast_library.recorded(name, kept[name]) for name in names if name in kept], failed


def recorded(path: Path) -> list[Curve]:
    """Curves that server_curves.py wrote."""
    return [forecast_library.recorded(name, one) for name, one in json.loads(path.read_text()).items()]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--systems", type=int, help="of each way, noise and number of levels; 20 unless curves are judged"
    )
    parser.add_argument("--latency", type=int, help="systems for the latencies; 40 unless curves are judged")
    parser.add_argument("--live", action="store_true", help="measure real servers that nothing was built on")
    parser.add_argument("--later", action="store_true", help="measure those written after the model's last change")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="of both: these kinds or studies alone")
    parser.add_argument("--save", type=Path, metavar="FILE", help="of both: keep the curves here, and go on from them")
    parser.add_argument(
        "--recorded", type=Path, nargs="*", default=[], metavar="FILE", help="curves that were measured"
    )
    parser.add_argument("--library", action="store_true", help="the library's curves with their utilisations")
    parser.add_argument("--published", action="store_true", help="what others published")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the runs are left")
    arguments = parser.parse_args()
    roles = (ROLES if arguments.live else ()) + (LATER if arguments.later else ())
    known = {name for role in roles for one in server_curves.declared(role) for name in server_curves.names(one)}
    if unknown := set(arguments.only) - known:
        parser.error(f"--only: no study and no kind of server is called {', '.join(sorted(unknown))}")
    curves_only = roles or arguments.recorded or arguments.library or arguments.published
    systems, latency = (0, 0) if curves_only else (20, 40)
    systems = systems if arguments.systems is None else arguments.systems
    latency = latency if arguments.latency is None else arguments.latency
    held = [forecast_systems.simulated(systems), faultless(2 * systems)] if systems else []
    if latency:
        forecast_systems.latencies(latency)
    measured = [curve for path in arguments.recorded for curve in recorded(path)]
    if roles:
        curves, failed = live(arguments.runs, roles, arguments.only, arguments.save)
        held.append(not failed)
        measured += curves
    if measured:
        held.append(real(measured))
    if arguments.library:
        held.append(real([curve for curve in forecast_library.curves() if curve.observations.resources]))
    if arguments.published:
        held.append(
            real([curve for curve in forecast_library.curves() if not curve.observations.resources], alone=True)
        )
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
