"""The case media-cache over a fleet of namespaces: python benchmarks/far_case.py [--profile quick|default] [RUN]

One host starts Varnish and nginx, two others drive them, a fourth coordinates: each a network namespace of this machine
with an agent, a state folder and an address of its own (network.py of the extension's tests). Prints what of the case's
known answer the run has (cases/media-cache/expected.toml) and whether anything is left on any host. Ends with 1 where
something was missed or is left. Takes four and a half minutes (quick); with RUN, a run folder that is there is judged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / "tests" / each) for each in ("fleet", "commands")]

from network import Network
from stations import LOADFRAME, Laboratory, Station

import loadframe
from gains import CASES, misses, row, side_by_side

CASE = "media-cache"
DRIVERS = ("one", "two")
BACK_WITHIN_S = 30.0


def taken(profile: str, runs: Path) -> tuple[Path, list[str]]:
    """The run folder, and the hosts on which something is left."""
    # a short name: sockets of servers are below it
    with tempfile.TemporaryDirectory(prefix="lf", dir="/var/tmp") as place, Network(["here", "north", *DRIVERS]) as lan:
        folder = Path(place)
        folder.chmod(0o755)
        stations = [Station("north", folder / "north", ["target"], lan.address("north"), lan.within("north"))]
        stations += [Station(name, folder / name, by=lan.within(name)) for name in DRIVERS]
        fleet = Laboratory(folder, stations).fleet()
        words = ["case", "run", CASE, "--fleet", str(fleet), "--runs", str(runs), "--json"]
        words += [f"--{profile}"] if profile != "default" else []
        command = [*lan.within("here"), LOADFRAME, *words]
        said = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
        if "run" not in said:
            raise SystemExit(f"{said.get('message')}\n{said.get('remedy')}")
        until = time.monotonic() + BACK_WITHIN_S
        while not all(each.as_before for each in stations) and time.monotonic() < until:
            time.sleep(0.2)
        return Path(said["run"]), [each.name for each in stations if not each.as_before]


def main() -> int:
    """Run the case, or judge a run, and print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN")
    parser.add_argument("--profile", choices=["quick", "default"], default="quick")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the run folder is made")
    arguments = parser.parse_args()
    run, left = (arguments.run, []) if arguments.run else taken(arguments.profile, arguments.runs)
    found = loadframe.conclude(loadframe.open_run(run)).answer
    study = loadframe.case(CASE).study(profile=arguments.profile, over_fleet=True)
    expected = tomllib.loads((CASES / CASE / "expected.toml").read_text(encoding="utf-8"))
    missed = misses(found, study, expected, "over a fleet")
    print(row(f"{CASE} over a fleet", found, None, missed))
    print(side_by_side(found))
    print("left: " + (", ".join(left) or "nothing"))
    return 1 if missed or left else 0


if __name__ == "__main__":
    sys.exit(main())
