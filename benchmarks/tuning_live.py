"""Searches on a real MariaDB with equal budgets: python benchmarks/tuning_live.py [--seconds N] [--peers]

Every method searches the values of tuning_live.toml, on a private server of its own, and has the same time for it, with
everything that it does: starting, warming, restarting, for Loadframe also the diagnosis and the proof. One that is
thinking when its time is over is interrupted.

  loadframe    `loadframe tune`
  random       the best of random points
  tpe, gp,     Optuna's TPE and Gaussian process, and SMAC (--peers; see tuning.py). They have at most as many trials as
  smac         random search had in its time, and SMAC's initial design is a quarter of these
  mysqltuner   no trial: what MySQLTuner advises after 20 s of this load, as far as it names a value (apt install
               mysqltuner)

Then all that they recommend, and the start, stand beside what Loadframe recommends, in interleaved, fresh blocks. Ends
with 1 where one of them is proved to be better.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import loadframe
import loadframe_tune
import tuning
from loadframe.bench.bench import RealBench
from loadframe.errors import StudyError, TargetError
from loadframe.kinds.registry import kind_named
from loadframe.model import SettingValue, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe_tune.search import Dimension, Point, Space

STUDY = Path(__file__).with_suffix(".toml")
LOADED_S = 20.0
AGAIN_S = 1.0
"""How soon the end is tried again where a step was being measured."""
FAILED = -3.0
"""Logarithm of the throughput against the start that a search is told of settings with which the server failed."""
ADVICE = re.compile(r"^(?P<name>[a-z_]+)\b\D*?(?:>=|=|>)\s*(?P<value>\d[\d.]*[KMG]?|ON|OFF)", re.IGNORECASE)
"""`innodb_buffer_pool_size (>= 187.5M) if possible.`, `table_definition_cache (400) > 1192 or -1`, `name=ON`"""

Settings = Mapping[str, SettingValue]


@dataclass(frozen=True)
class Found:
    """What a method recommends: the settings that it changes. trials: that it has measured."""

    settings: Settings
    trials: int


@dataclass
class Server:
    """A real one as the searches of tuning.py know machines: it measures points of a space."""

    bench: RealBench
    space: Space
    measured: dict[Point, list[float]] = field(default_factory=dict)
    steps: int = 0
    measuring: bool = False

    def measure(self, point: Point) -> float:
        """Logarithm of the throughput against the first point that was measured."""
        self.measuring = True
        try:
            return self._measure(point)
        finally:
            self.measuring = False

    def _measure(self, point: Point) -> float:
        name = f"p{'-'.join(map(str, point))}"
        try:
            self.bench.declare(name, name, self._state(point))
            if self.bench.starts_fresh(name):
                self._step(name)
            value = math.log(self._step(name))
        except (TargetError, StudyError) as error:
            print(f"    {named(self.space, point)}: {error.fact}", file=sys.stderr)
            self.bench.recover("start")
            return FAILED
        self.measured.setdefault(point, []).append(value)
        first = next(iter(self.measured.values()))[0]
        return value - first

    def _state(self, point: Point) -> TargetState:
        return TargetState({**self.bench.start_state.settings, **named(self.space, point)})

    def _step(self, name: str) -> float:
        self.steps += 1
        level = self.bench.study.levels[-1]
        return self.bench.take_step(StepRequest(name, level, 1, self.steps)).throughput


def named(space: Space, point: Point) -> dict[str, SettingValue]:
    """The settings of a point that differ from the start's."""
    return {
        each.name: each.values[place]
        for each, place in zip(space.dimensions, point, strict=True)
        if place != each.start
    }


def space_of(study: Study) -> Space:
    """Every value that the study gives, the start's among them."""
    asked = study.tune.settings
    assert isinstance(asked, dict), "the study gives the values of each setting"
    dimensions = []
    for name, given in asked.items():
        values = tuple(kind_named("mariadb").check_settings({name: value})[name] for value in given)
        ordered = len(values) > 2 and all(isinstance(value, int) for value in values)
        start = study.target.settings.get(name, DEFAULTS.get(name))
        (start,) = kind_named("mariadb").check_settings({name: start}).values()
        dimensions.append(Dimension(name, values, values.index(start), ordered))
    return Space(tuple(dimensions))


DEFAULTS: Settings = {
    "innodb_log_buffer_size": "16M",
    "innodb_io_capacity": 200,
    "innodb_adaptive_hash_index": False,
    "thread_handling": "one-thread-per-connection",
}
"""What the server has where the study says nothing: defaults of MariaDB 10.11."""


@contextmanager
def server(study: Study) -> Iterator[RealBench]:
    """A private server with the study's data, in the state that it starts from."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder), study.study.name)
        with RealBench(study, run) as bench:
            bench.declare("start", "as given", bench.start_state)
            bench.use("start")
            yield bench


def with_loadframe(study: Study, runs: Path) -> Found:
    """`loadframe tune`: what it has proved, else nothing."""
    found = loadframe_tune.tune(study, runs)
    print(f"    {found.end}, {found.expected:.2f} expected")
    changed = {each.name: each.after for each in found.settings if each.after != each.before}
    return Found(changed if found.end == "gained" else {}, len(found.trials))


class OutOfTimeError(Exception):
    """A search has used up its time."""


@contextmanager
def ending(machine: Server, seconds: float) -> Iterator[None]:
    """Ends the block after `seconds`, but not during a step: a search that thinks of its next point."""

    def end(signum: int, frame: object) -> None:
        if not machine.measuring:
            raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, AGAIN_S), AGAIN_S)
    try:
        yield
    except OutOfTimeError:
        print(f"    interrupted after {seconds:.0f} s")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def with_peer(method: str, study: Study, seconds: float, trials: int) -> Found:
    """One of the searches of tuning.py, until its time or its trials are over."""
    began = time.monotonic()
    with server(study) as bench:
        machine = Server(bench, space_of(study))
        best = machine.space.start
        with ending(machine, seconds - (time.monotonic() - began)):
            for recommended in tuning.METHODS[method](machine, trials, 1):
                best = recommended
                if time.monotonic() - began > seconds:
                    break
        return Found(named(machine.space, best), sum(map(len, machine.measured.values())))


def with_mysqltuner(study: Study) -> Found:
    """What MySQLTuner advises on a server that has had the load for a while."""
    with server(study) as bench:
        until = time.monotonic() + LOADED_S
        step = 0
        while time.monotonic() < until:
            step += 1
            bench.take_step(StepRequest("start", study.levels[-1], 1, step))
        advice = mysqltuner(bench.endpoint.options)
    settings: dict[str, SettingValue] = {}
    for line in advice:
        told = ADVICE.match(line)
        if told is None:
            print(f"    no value in: {line}")
            continue
        try:
            settings |= kind_named("mariadb").check_settings({told["name"]: value_of(told["value"])})
        except StudyError as error:
            print(f"    not taken, {error.fact}: {line}")
        else:
            print(f"    taken: {line}")
    return Found(settings, 0)


def value_of(told: str) -> SettingValue:
    """`187.5M`: bytes, rounded up to whole MiB (what units.py reads has no fraction); others as they are."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(told[-1].upper())
    if factor is None:
        return {"ON": True, "OFF": False}.get(told.upper(), told) if told.isalpha() else math.ceil(float(told))
    size = float(told[:-1]) * factor
    return math.ceil(size / (1 << 20)) << 20 if size > 1 << 20 else math.ceil(size)


UNGUARDED = "if ( !defined( $myvar{'innodb_buffer_pool_chunk_size'} ) )"
GUARDED = "if ( !$myvar{'innodb_buffer_pool_chunk_size'} )"
"""MySQLTuner 1.9.9 divides by the chunk size, which MariaDB 10.11.19 tells as 0, and ends there."""


def mysqltuner(options: Mapping[str, str]) -> list[str]:
    """Its advice on variables, a line for each; of a copy that says nothing of chunks where their size is 0."""
    words = ["--json", "--skippassword", "--nosysstat", "--nocolor", "--silent"]
    done = subprocess.run(
        ["perl", "-", "--defaults-file", options["option_file"], "--socket", options["socket"], *words],
        input=installed().read_text(encoding="utf-8").replace(UNGUARDED, GUARDED),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    begins = done.stdout.find("{")
    if begins < 0:
        raise SystemExit(f"mysqltuner has no answer: {(done.stderr or done.stdout).strip()[-500:]}")
    answer = json.loads(done.stdout[begins:])
    return [line.strip() for line in answer["AdjustVariables"]]


def installed() -> Path:
    """The program. SystemExit where it is not there."""
    program = shutil.which("mysqltuner")
    if program is None:
        raise SystemExit("mysqltuner is not installed: apt install mysqltuner, or leave it out (--without mysqltuner)")
    return Path(program)


def beside(study: Study, runs: Path, found: Mapping[str, Found], seconds: float) -> bool:
    """All recommendations beside Loadframe's, in fresh blocks; prints a line for each. Whether none is better."""
    best = found["loadframe"].settings
    start = dict(study.target.settings)
    others = {"start": {}, **{name: each.settings for name, each in found.items() if name != "loadframe"}}
    different = {name: settings for name, settings in others.items() if dict(settings) != dict(best)}
    for name in others.keys() - different.keys():
        print(f"  {name}: recommends the same")
    if not different:
        return True
    whole = study.resolved()
    whole.pop("tune")
    whole["target"]["settings"] = {**start, **best}
    whole["alternative"] = [
        {"name": name, "target": {"settings": {**unchanged(study, best), **start, **settings}}}
        for name, settings in different.items()
    ]
    whole["measure"]["budget"] = f"{seconds:g}s"
    beaten = True
    for each in loadframe.compare(Study.model_validate(whole), runs, enough=lambda verdict: False):
        ratio = each.verdict
        print(f"  {each.after}: {ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f}, {ratio.blocks} blocks)")
        beaten = beaten and ratio.decision != "better"
    return beaten


def unchanged(study: Study, best: Settings) -> dict[str, SettingValue]:
    """The start's values of what Loadframe changed: an alternative has what the target has where it says nothing."""
    return {name: DEFAULTS[name] for name in best if name not in study.target.settings}


def main() -> int:
    parser = argparse.ArgumentParser(description="Searches on a real MariaDB with equal budgets.")
    parser.add_argument("--seconds", type=float, default=240.0, help="for each search, and for the comparison")
    parser.add_argument("--peers", action="store_true", help="Optuna's TPE and Gaussian process, SMAC too")
    parser.add_argument("--without", nargs="*", default=[], choices=["random", *tuning.PEERS, "mysqltuner"])
    given = parser.parse_args()
    if "mysqltuner" not in given.without:
        installed()  # before minutes of searching
    study = loadframe.load_study(STUDY, [f"measure.budget={given.seconds:g}s"])
    methods = [name for name in ("random", *(tuning.PEERS if given.peers else ())) if name not in given.without]
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        found = {"loadframe": told("loadframe", lambda: with_loadframe(study, runs))}
        trials = study.tune.trials
        for name in methods:
            found[name] = told(name, partial(with_peer, name, study, given.seconds, trials))
            trials = found[methods[0]].trials
        if "mysqltuner" not in given.without:
            found["mysqltuner"] = told("mysqltuner", lambda: with_mysqltuner(study))
        print("against what Loadframe recommends:")
        return int(not beside(study, runs, found, given.seconds))


def told(name: str, search: Callable[[], Found]) -> Found:
    """What a search found, with a line that says so."""
    print(f"{name}:", flush=True)
    began = time.monotonic()
    found = search()
    what = ", ".join(f"{setting} = {value}" for setting, value in found.settings.items()) or "nothing"
    print(f"    {found.trials} trials in {time.monotonic() - began:.0f} s: {what}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
