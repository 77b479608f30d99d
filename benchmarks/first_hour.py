"""The first hour with a service of one's own: python benchmarks/first_hour.py [--budget S] [--runs DIR] [NAME[:WAY]...]

Three services of benchmarks/planted/services are what a stranger may have: gunicorn with two sync workers, Node with
its one thread, Java with a pool of four threads. Each is investigated with the study that `loadframe init` writes:

    port        the service runs and `init --port` finds it; nothing may be changed, so the cause stays suspected
    declared    `init --command` with the command as a person types it; then the knob is declared as the comments of
                the study say (removing the comment signs), unless `init` has declared it by itself

A row has the first finding, its status, and the gain with its 95 % interval where one is proven. It ends with 1 where a
first finding is wrong, or a status is not what it must be. A study takes at most --budget seconds (init's own are 2
minutes). A service whose program is missing is skipped.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import planted_programs as programs

Stage = str
STAGES: tuple[Stage, ...] = ("port", "declared")
LOADFRAME = (str(Path(sys.executable).with_name("loadframe")),)
PORT = 8000
SIGN = "# "


@dataclass(frozen=True)
class Service:
    """study: the planted one that says how it runs. command: as a person types it, with names of places in braces.
    first: ids of findings, each of which is right. knob: that is declared. version: the command that says it."""

    study: str
    command: str
    first: tuple[str, ...]
    knob: str
    version: tuple[str, ...]


SERVICES: Mapping[str, Service] = {
    "gunicorn": Service(
        "service-gunicorn",
        "PYTHONPATH={packages} {python} -m gunicorn --chdir {services} --bind 127.0.0.1:8000 --workers 2 "
        "wsgi:application",
        ("service.parallelism",),
        "workers",
        (sys.executable, "-c", "import gunicorn; print('gunicorn', gunicorn.__version__)"),
    ),
    "node": Service(
        "service-node",
        "WEB_CONCURRENCY=1 node {services}/pages.js 8000",
        ("cpu.hot_thread",),
        "web_concurrency",
        ("node", "--version"),
    ),
    "java": Service(
        "service-java",
        "java -Dsun.net.httpserver.nodelay=true -cp {build} Booking 8000 {services}/booking.properties",
        ("service.parallelism",),
        "threads",
        ("java", "--version"),
    ),
}
HEAD = f"{'service':10} {'study':9} {'first finding':36} {'right':>5} {'gain':>6} {'interval':>14} {'seconds':>8}"


def loadframe(*words: str, folder: Path) -> dict[str, Any]:
    """The answer of a command as JSON. RuntimeError where it fails."""
    done = subprocess.run([*LOADFRAME, *words, "--json"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"loadframe {' '.join(words)}: {done.stdout[-2000:] or done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def uncommented(text: str) -> str:
    """A study with the setting that its comments suggest: the tables in comments stand for those of the same name, and
    a key in comments for the key of the line before."""
    lines: list[str] = []
    for line in text.splitlines():
        bare = line.removeprefix(SIGN)
        if line.startswith(SIGN) and re.match(r"\[|[a-z_]+ = ", bare):
            key = bare.partition(" = ")[0]
            if lines and lines[-1].startswith(f"{key} = "):
                lines.pop()
            lines.append(bare)
        else:
            lines.append(line)
    return "\n".join([*lines, ""])


def written(service: Service, stage: Stage, folder: Path, stack: ExitStack) -> str:
    """The name of the study's file, which `init` writes into a folder. stack: ends the service that runs."""
    if stage == "port":
        tables = programs.studies()[service.study]
        running = stack.enter_context(programs.started(tables, tables["target"]["settings"]))
        return str(loadframe("init", "--port", str(running.port), folder=folder)["study"])
    command = programs.expanded(service.command)
    answer = loadframe("init", "--command", command, "--port", str(PORT), folder=folder)
    file = folder / str(answer["study"])
    if f"[target.setting.{service.knob}]" not in file.read_text().splitlines():
        file.write_text(uncommented(file.read_text()))
    return file.name


@dataclass(frozen=True)
class Row:
    """One investigation."""

    finding: str
    status: str
    right: bool
    gain: Mapping[str, float] | None
    seconds: float


def investigated(name: str, stage: Stage, budget_s: int, runs: Path) -> Row:
    """One service with one study of `init`."""
    service = SERVICES[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)  # the service runs as another user where we are root
        file = written(service, stage, folder, stack)
        cut = ("--set", f"measure.budget={budget_s}s", "--set", "measure.profile=off")
        found = loadframe("investigate", file, *cut, "--runs", str(runs.absolute()), folder=folder)
    findings = [finding for one in found["rounds"] for finding in one["findings"]]
    first = next(iter(found["rounds"][0]["findings"]), None)
    if first is None:
        return Row("nothing", "", False, None, found["seconds"])
    statuses = {finding["status"] for finding in findings if finding["id"] == first["id"]}
    must = "suspected" if stage == "port" else "confirmed"
    status = must if must in statuses else str(first["status"])
    return Row(first["id"], status, first["id"] in service.first and must == status, found["gain"], found["seconds"])


def line(name: str, stage: Stage, row: Row) -> str:
    """One line of the table."""
    ratio = f"{row.gain['ratio']:.2f}" if row.gain else "-"
    interval = f"{row.gain['low']:.2f} to {row.gain['high']:.2f}" if row.gain else "-"
    finding = f"{row.finding} ({row.status})"
    right = "yes" if row.right else "NO"
    return f"{name:10} {stage:9} {finding:36} {right:>5} {ratio:>6} {interval:>14} {row.seconds:>8.0f}"


def versions(names: Iterator[str]) -> Iterator[str]:
    """Of what the services are made with."""
    yield f"Linux {platform.release()}, Python {platform.python_version()}"
    for name in names:
        command = [programs.expanded(word) for word in SERVICES[name].version]
        said = subprocess.run(command, capture_output=True, text=True)
        yield f"{name}: {(said.stdout or said.stderr).partition(chr(10))[0]}"


def chosen(words: list[str]) -> list[tuple[str, Stage]]:
    """Services and stages of the arguments. SystemExit for what there is none of."""
    pairs: list[tuple[str, Stage]] = []
    for word in words or list(SERVICES):
        name, _, stage = word.partition(":")
        if name not in SERVICES or stage not in ("", *STAGES):
            raise SystemExit(f"there is no {word}; there are {', '.join(SERVICES)}, each with :{' or :'.join(STAGES)}")
        pairs += [(name, one) for one in STAGES if stage in ("", one)]
    return pairs


def main() -> int:
    """Investigate the chosen services and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME[:STAGE]", help="all of them without any")
    parser.add_argument("--budget", type=int, default=80, metavar="S", help="seconds of each study")
    parser.add_argument("--runs", type=Path, help="keep the run folders here")
    arguments = parser.parse_args()
    pairs = chosen(arguments.names)
    programs.build()
    studies = programs.studies()
    lacking = {name: missing for name, _ in pairs if (missing := programs.lacking(studies[SERVICES[name].study]))}
    for name, missing in lacking.items():
        print(f"{name:10} skipped: this machine has no {', '.join(missing)}", flush=True)
    pairs = [pair for pair in pairs if pair[0] not in lacking]
    print("\n".join(versions(iter(dict.fromkeys(name for name, _ in pairs)))))
    print(HEAD, flush=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, stage in pairs:
            try:
                row = investigated(name, stage, arguments.budget, arguments.runs or Path(folder))
            except RuntimeError as error:
                print(f"{name:10} {stage:9} {error}", flush=True)
                wrong += 1
                continue
            wrong += not row.right
            print(line(name, stage, row), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
