"""The story's ladder on a real MySQL Cluster: python benchmarks/cluster.py [--script S...] [--budget T] [--window T]

Runs the case `cluster-ladder` once for each of sysbench's scripts, and prints versions and the flags of the build; for
each change its gain with the 95 % interval, its share of the whole, and what the story measured; then for each state
that was measured how much of one CPU each kind of a data node's thread used, the busiest first, and how many CPUs
the SQL node and the driver used. The governor of the CPUs is printed, and is no rung. Without the programs it says what
is missing and how to have it, and ends with 1.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import loadframe
from loadframe.errors import UserError
from loadframe.model import Ladder, Rung, Step, Verdict
from loadframe.reporting import ladder_report
from loadframe_ndb.nodes import LOADED
from loadframe_ndb.sql_node import PACKAGE

CASE = "cluster-ladder"
SCRIPTS = ("oltp_read_write", "oltp_read_only", "oltp_point_select")
FLAGS = re.compile(r"^((?:WITH_|CMAKE_BUILD_TYPE|CMAKE_CXX_FLAGS|CMAKE_CXX_COMPILER\b)[\w]*):\w+=(.+)$", re.M)
TOLD = ("CMAKE_", "WITH_NDB", "WITH_UNIT_TESTS", "WITH_ROUTER", "WITH_MYSQLX", "WITH_LTO", "WITH_JEMALLOC")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
USES = re.compile(r"ndb\.\w+_cpu|(?:sql\d+|shard\d+|driver)\.cpu\.cores|ndb\.sql\.wait")


def build_flags() -> Iterator[str]:
    """Those of the data nodes' program, where it lies in the folder in which it was built."""
    program = Path(LOADED.required()).resolve()
    caches = (folder / "CMakeCache.txt" for folder in program.parents)
    cache = next((one for one in caches if one.exists()), None)
    if cache is None:
        yield "unknown: it was not built on this machine"
        return
    for name, value in FLAGS.findall(cache.read_text(encoding="utf-8")):
        if name.startswith(TOLD):
            yield f"{name}={value}"


def told_by_story() -> Mapping[str, str]:
    """By the change, what the story measured."""
    answer = tomllib.loads((loadframe.case(CASE).folder / "expected.toml").read_text(encoding="utf-8"))
    return {name: str(words) for name, words in answer["story"]["changes"].items()}


def shown(verdict: Verdict | None) -> str:
    """Gain and interval, or a dash."""
    return f"{verdict.ratio:6.2f}  {verdict.low:5.2f} to {verdict.high:5.2f}" if verdict is not None else f"{'-':>6}"


def row(rung: Rung, story: str) -> str:
    decision = "refused" if rung.refused else "not tried" if rung.reported is None else rung.reported.decision
    share = f"{rung.share:.0%}" if rung.share is not None else "-"
    kept = "kept" if rung.kept else "reverted"
    return f"{rung.change:28} {shown(rung.reported):24} {share:>6}  {kept:9} {decision:22} {story}"


def use(steps: Sequence[Step]) -> str:
    """Means over these steps, the busiest kind of thread first."""
    names = sorted({name for step in steps for name in step.metrics if USES.fullmatch(name)})
    means = {name: statistics.fmean(step.metrics[name] for step in steps if name in step.metrics) for name in names}
    ordered = sorted(means.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {value:.2f}" for name, value in ordered if value >= 0.01)


def print_ladder(script: str, found: Ladder) -> None:
    story = told_by_story()
    print(f"\n{script}: {found.seconds:.0f} s, run {found.run}")
    for rung in found.rungs:
        print(row(rung, story.get(rung.change, "not of the story")))
        if rung.refused:
            print(f"{'':28} {rung.refused}")
    print(f"{'all that are kept':28} {shown(found.total and found.total.reported)}  the story: {story['total']}")
    measured = loadframe.open_run(Path(found.run))
    titles = {name: one.title for name, one in measured.treatments().items()}
    steps = [step for step in measured.steps() if step.counts]
    for name in dict.fromkeys(step.treatment for step in steps):
        of = [step for step in steps if step.treatment == name]
        middle = statistics.median(step.throughput for step in of)
        flagged = sum(bool(step.flags) for step in of)
        print(f"  {titles[name]}: {middle:.0f}/s in {len(of)} steps, {flagged} flagged; {use(of)}")
    for sentence in ladder_report.sentences(found):
        print(sentence)


def run(script: str, arguments: argparse.Namespace, runs: Path) -> None:
    overrides = [f"workload.options.script={script}", f"workload.options.table_size={arguments.rows}"]
    overrides += [f"measure.budget={arguments.budget}"] if arguments.budget else []
    overrides += [f"measure.window={arguments.window}"] if arguments.window else []
    study = loadframe.case(CASE).study(profile=arguments.profile, overrides=overrides)
    print_ladder(script, loadframe.ladder(study, runs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", action="append", choices=SCRIPTS, help="one of them, instead of all")
    parser.add_argument("--profile", default="default", choices=("quick", "default", "full"))
    parser.add_argument("--budget", help="of each ladder, for example 4m")
    parser.add_argument("--window", help="of each step, for example 2s")
    parser.add_argument("--rows", type=int, default=10000, help="of each table")
    parser.add_argument("--runs", type=Path, help="where the run folders stay")
    arguments = parser.parse_args()
    try:
        print(f"data nodes: {LOADED.version()}; SQL node: {PACKAGE.version()} (NDB inside)")
        print("build of the data nodes: " + "; ".join(build_flags()))
        governor = GOVERNOR.read_text(encoding="utf-8").strip() if GOVERNOR.exists() else "none to set on this machine"
        print(f"sysbench: {shutil.which('sysbench') or 'missing'}; governor: {governor}")
        with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
            for script in arguments.script or SCRIPTS:
                run(script, arguments, arguments.runs or Path(folder))
    except UserError as error:
        print(f"{error.fact}\n{error.remedy}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
