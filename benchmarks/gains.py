"""What the cases give on this machine: python benchmarks/gains.py [--times N] [--profile quick|default|full] [CASE...]

Runs each case N times and prints a row per run: the first finding and its status, the load at which it acts, the gain
with its 95 % interval, what of it keeps durability, how many steps were flagged, how long it took, and whether all of
that is the case's known answer (cases/*/expected.toml; quick profiles also have to end within 120 s). Of a ladder it is
what was kept, the whole gain, and a line with each change. With --moved, the render farm's cause is moved as its
README says, and the answer has to move with it; --study names another study of the case; of one that forecasts, what
came of the forecast counts. Ends with 1 where a run missed its answer. The README's figures are these.
"""

from __future__ import annotations

import argparse
import html
import math
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import loadframe
from loadframe.errors import MissingTool
from loadframe.model import Forecast, Investigation, Ladder
from loadframe.prediction.forecasting import USED_UP
from loadframe.study import Study

CASES = Path(loadframe.__file__).parent / "cases"
QUICK_S = 120.0
HEAD = (
    f"{'case':40} {'first finding':36} {'acts at':>8} {'known':>6} {'gain':>6} {'interval':>14} "
    f"{'durable':>8} {'flagged':>9} {'seconds':>8}  answer"
)
MOVED = (
    [],
    ["target.settings.table_open_cache=400"],
    ["workload.options.tables_per_job=8"],
    ["cage.open_files=1024"],
    ["target.settings.table_open_cache=4000"],
)


def row(case: str, found: Investigation, known_load: float | None, missed: list[str]) -> str:
    """One line of the table."""
    first = found.rounds[0].findings[0] if found.rounds[0].findings else None
    finding = f"{first.id} ({first.status})" if first else found.outcome.kind
    acts_at = f"{first.reached_at.load:.3g}" if first and first.reached_at else "-"
    gain, durable = found.gain, next((one.reported for one in found.variants[:-1] if not one.gives_up), None)
    ratio = f"{gain.ratio:.2f}" if gain else "-"
    interval = f"{gain.low:.2f} to {gain.high:.2f}" if gain else "-"
    kept = f"{durable.ratio:.2f}" if durable else "-"
    known = f"{known_load:.3g}" if known_load else "-"
    flagged = f"{sum(found.quality.flags.values())} of {found.quality.steps}"
    return (
        f"{case:40} {finding:36} {acts_at:>8} {known:>6} {ratio:>6} {interval:>14} {kept:>8} {flagged:>9} "
        f"{found.seconds:>8.0f}  {'missed: ' + ', '.join(missed) if missed else 'yes'}"
    )


def known_load(study: Study, expected: Mapping[str, Any]) -> float | None:
    """The load at which the cause must act, where the case's answer says how it follows from the study."""
    if "reached_at" not in expected:
        return None
    above, below = expected["reached_at"].split(" / ")
    return float(study.target.settings[above]) / float(study.workload.options[below])


def misses(found: Investigation, study: Study, expected: Mapping[str, Any], profile: str) -> list[str]:
    """What of the known answer the run did not give. A cause that acts beyond the highest level must not be found."""
    if found.forecast is not None:
        return forecast_misses(found, found.forecast, study, expected)
    load = known_load(study, expected)
    if load is not None and load > study.levels[-1]:
        return [] if left_alone(found) else ["nothing should change"]
    first = found.rounds[0].findings[0] if found.rounds[0].findings else None
    kept = [trial.remedy.id for one in found.rounds for trial in one.tried if trial.kept]
    checks = {
        "finding": first is not None and first.id in expected["finding"] and first.status == "confirmed",
        "remedies": kept == expected["kept"],
        "gain": found.gain is not None and found.gain.low > expected["gain_above"],
        "time": profile != "quick" or found.seconds < QUICK_S,
    }
    if load is not None:
        within = expected["reached_at_within"]
        at = first.reached_at if first else None
        checks["load"] = at is not None and abs(at.load / load - 1) <= within
    if "next" in expected:
        checks["next"] = found.next_limit is not None and found.next_limit.id in expected["next"]
    if "alternative" in expected:
        checks |= of_alternative(found, study, expected["alternative"])
        checks |= witnessed(found, expected)
    return [name for name, holds in checks.items() if not holds]


def left_alone(found: Investigation) -> bool:
    """Whether nothing was gained, tried or changed, and the outcome says that there was no need."""
    return (
        found.outcome.kind in ("no-limit-reached", "limit-not-seen", "cpu-saturated", "limit-without-remedy")
        and found.gain is None
        and not any(one.tried for one in found.rounds)
        and not (Path(found.run) / "changes.jsonl").exists()
    )


def forecast_misses(found: Investigation, forecast: Forecast, study: Study, expected: Mapping[str, Any]) -> list[str]:
    """What of the known answer a forecast did not give. It may leave open which of several resources saturates first;
    a refusal is an answer where the report says why."""
    page = " ".join(html.unescape(Path(found.report).read_text()).split())
    if forecast.refused is not None:
        told = f"No forecast. {forecast.refused}" in page and not forecast.at and not forecast.scored
        return [] if told else ["refused without a word"]
    latest = forecast.capacity.load.high if forecast.capacity else math.inf
    first = {one.resource for one in forecast.saturation if one.at_load is not None and one.at_load.low <= latest}
    known, reached = expected["limited_by"], forecast.reached
    used_up = reached is not None and reached.limited_by == known and reached.utilization >= USED_UP
    checks = {
        "loads": [one.load for one in forecast.scored] == [at for at in study.levels if at > forecast.measured[-1]],
        "saturates first": known in first,
        "finding": not used_up or expected["finding"][0] in {one.id for one in found.rounds[0].findings},
        "report": "Forecast and outcome" in page and "CPU of each component by load" in page,
    }
    return [name for name, holds in checks.items() if not holds]


def witnessed(found: Investigation, expected: Mapping[str, Any]) -> dict[str, bool]:
    """Of a target whose store is mapped and an alternative that sends files: the cause is the target's alone, its
    faults tell of it, and every answer was right."""
    (one,) = (each for each in found.alternatives if each.name == expected["alternative"]["name"])
    faults = next((each for each in one.witnesses if each.metric == "target.paging.major_faults"), None)
    steps = loadframe.open_run(Path(found.run)).steps()
    return {
        "faults": faults is not None and faults.target > 1000 > 10 * faults.alternative,
        "the target's alone": expected["finding"][0] not in {each.id for each in one.round.findings},
        "answers": all(step.errors == 0 for step in steps),
        "report": "side by side" in Path(found.report).read_text(),
    }


def of_alternative(found: Investigation, study: Study, expected: Mapping[str, Any]) -> dict[str, bool]:
    """Of the alternative: near the target in memory, ahead beyond it, and where the two diverge."""
    (one,) = (each for each in found.alternatives if each.name == expected["name"])
    memory_mib, within = (study.cage.memory or 0) / 2**20, 1 + expected["parts_at_memory_within"]
    at = one.divergence
    return {
        "in memory": 1 / expected["in_memory_within"] < one.by_level[0].ratio < expected["in_memory_within"],
        "beyond memory": one.by_level[-1].low > expected["beyond_memory_above"],
        "divergence": at is not None and at.low <= within * memory_mib and at.high * within >= memory_mib,
    }


def side_by_side(found: Investigation) -> str:
    """A line for each alternative: the ratio at the lowest and the highest load, and where the two diverge."""
    lines = []
    for one in found.alternatives:
        ends = (one.by_level[0], one.by_level[-1])
        told = ", ".join(f"{v.ratio:.2f} ({v.low:.2f} to {v.high:.2f}) at {v.levels[0]:g}" for v in ends)
        where = one.divergence
        at = f"{where.load:.3g} ({where.low:.3g} to {where.high:.3g})" if where else "-"
        lines.append(f"    {one.name}: {told}; they diverge at {at}")
    return "\n".join(lines)


def ladder_misses(found: Ladder, expected: Mapping[str, Any], profile: str) -> list[str]:
    """What of the known answer a ladder did not give: these changes kept, some reverted, the gain, its shares; or,
    where no gain is expected, that nothing was kept."""
    kept, shares = {rung.change for rung in found.kept}, [rung.share for rung in found.rungs if rung.share is not None]
    if "gain_above" not in expected:
        return [] if not kept & set(expected["without_gain"]) else ["kept"]
    checks = {
        "kept": set(expected["kept"]) <= kept,
        "reverted": bool(set(expected["without_gain"]) - kept),
        "gain": found.total is not None and found.total.reported.low > expected["gain_above"],
        "shares": math.isclose(sum(shares), 1.0),
        "time": profile != "quick" or found.seconds < QUICK_S,
    }
    return [name for name, holds in checks.items() if not holds]


def ladder_row(case: str, found: Ladder, missed: list[str]) -> str:
    """The same line of a ladder, and below it a line for the changes."""
    total, flags = found.total and found.total.reported, found.quality.flags if found.quality else {}
    ratio, interval = (f"{total.ratio:.2f}", f"{total.low:.2f} to {total.high:.2f}") if total else ("-", "-")
    steps = found.quality.steps if found.quality else 0
    kept = f"{len(found.kept)} of {len(found.rungs)} changes kept"
    told = ", ".join(
        f"{r.change} {r.reported.ratio:.2f}{'' if r.kept else ' back'}"
        for r in found.rungs
        if r.reported and r.reported.has_ratio
    )
    return (
        f"{case:40} {kept:36} {'-':>8} {'-':>6} {ratio:>6} {interval:>14} {'-':>8} "
        f"{f'{sum(flags.values())} of {steps}':>9} {found.seconds:>8.0f}  "
        f"{'missed: ' + ', '.join(missed) if missed else 'yes'}\n    {told}"
    )


def main() -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all of them without any")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", choices=["quick", "default", "full"], default="quick")
    parser.add_argument("--study", help="another study of the case than its main one")
    parser.add_argument("--moved", action="store_true", help="the render farm with its cause moved")
    arguments = parser.parse_args()
    names = ["render-farm"] if arguments.moved else arguments.cases or [case.name for case in loadframe.cases()]
    loadframe.sweep_leftovers()
    print(HEAD, flush=True)
    missing = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            expected = tomllib.loads((CASES / name / "expected.toml").read_text())
            expected |= expected.get(arguments.study or "", {})
            for overrides in MOVED if arguments.moved else [[]]:
                for _ in range(arguments.times):
                    study = loadframe.case(name).study(
                        profile=arguments.profile, which=arguments.study, overrides=overrides
                    )
                    if loadframe.case(name).verb == "ladder":
                        try:
                            ladder = loadframe.ladder(study, Path(folder))
                        except MissingTool as error:
                            print(f"{name:40} {error.fact}: {loadframe.case(name).needs}", flush=True)
                            continue
                        missed = ladder_misses(ladder, expected, arguments.profile)
                        missing += bool(missed)
                        print(ladder_row(name, ladder, missed), flush=True)
                        continue
                    found = loadframe.investigate(study, Path(folder))
                    missed = misses(found, study, expected, arguments.profile)
                    missing += bool(missed)
                    changed = [one.rpartition(".")[2] for one in overrides]
                    title = " ".join([name, *([arguments.study] if arguments.study else []), *changed])
                    print(row(title, found, known_load(study, expected), missed), flush=True)
                    if found.alternatives:
                        print(side_by_side(found), flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
