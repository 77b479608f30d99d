"""Planted bottlenecks: python benchmarks/planted.py [--times N] [--runs DIR] [--kinds K,K] [--fleet FILE [--on-each]]
    [--list] [NAME...]

Starts real servers with one cause planted in each (benchmarks/planted/*.toml) and scores `investigate`: whether the
right cause comes first, whether it is confirmed where a change can move it, and whether anything else is confirmed
falsely. A file is a study with a table [planted]:

    cause      what was planted, in words; where nothing was, they begin with "nothing"
    first      ids of findings, each of which is right as the first one; empty: nothing may be confirmed or kept
    status     what the planted cause must become: "confirmed" where a remedy exists that may be tried, "suspected"
               where none does, "helped" where the remedy leaves the cause's own evidence as it is, or where only
               its number is moved (a cap on the rate): then to confirm it is false
    settings   settings that kept remedies must change, all of them, where the finding alone does not tell the cause;
               two of them are a pair: limits in series, of which neither helps alone
    sham       settings that give nothing, for a start of the server: they stand in for the change of every remedy.
               The cause is there and its evidence, but nothing may be confirmed, called helpful or kept
    strangers  how many processes outside the study use a CPU each
    flag       a flag that most steps must carry: a disturbance is not a cause, and has to be seen

A study of a service of the reader's own (kind = "service", programs in benchmarks/planted/services) declares the
settings that lift its cause and others that do nothing: these are its decoys, and none may be changed for good.
planted_services.py shows without Loadframe that they are what they are said to be. A study whose programs are missing
is skipped. Rules of one line (planted_rivals.py) are scored on the same measurements, of clusters as well.

With --fleet FILE they are investigated on the hosts of a fleet that have the role trial (docs/fleet.md), each whole on
one of them, whichever is free; with --on-each on every one of them. The last column then has the host, and the totals
are also told by host. Nothing is compared between hosts; those of one kernel take turns. Shams and strangers are left
out: they change what is around an investigation, on this machine alone. Each host has this folder at the same place,
with what planted_programs compiles.

A table is printed as the runs end, then the totals; it ends with 1 where a goal is missed: at least 90 % right first,
no false confirmation, no decoy. A study takes 20 to 90 s on two cores, a pair up to 5 minutes, all of them two hours.
On a machine that others use, `cpu.others` comes first in all of them, rightly. To add a cause, add a file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import loadframe
import planted_programs
import planted_rivals
from hosts_investigations import Asked, investigations_over
from loadframe.diagnosis.remedies import BUILDERS, Situation
from loadframe.errors import UserError
from loadframe.model import Change, Finding, Investigation, Price, Remedy, SettingValue, Step
from loadframe.progress import Silent
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, validate
from loadframe_fleet.declaration import load as load_fleet
from loadframe_fleet.on_hosts import Done

Kind = Literal["cause", "pair", "sham", "nothing", "stranger"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_THIS_MACHINE: tuple[Kind, ...] = ("sham", "stranger")
NOTHING = "nothing"
FOLDER = Path(__file__).with_name("planted")
RIGHT_FIRST = 0.9
FALSE_CONFIRMATIONS = 0
SPIN = "while True: pass"
HEAD = (
    f"{'planted':26} {'first finding':38} {'right':>6} {'proved':>7} {'confirmed besides':26} {'gain':>6} "
    f"{'interval':>14} {'flagged':>9} {'seconds':>8}"
)


@dataclass(frozen=True)
class Planted:
    """One file: the study and what must come out of it."""

    name: str
    study: Study
    cause: str
    first: tuple[str, ...] = ()
    status: str = "confirmed"
    settings: tuple[str, ...] = ()
    sham: Mapping[str, SettingValue] = field(default_factory=dict)
    strangers: int = 0
    flag: str = ""

    @property
    def decoys(self) -> frozenset[str]:
        """The declared settings of a service that have nothing to do with its cause."""
        return frozenset(self.study.target.setting).difference(self.settings)

    @property
    def kind(self) -> Kind:
        """What it is a test of."""
        if self.strangers:
            return "stranger"
        if self.sham:
            return "sham"
        if self.cause.startswith(NOTHING):
            return "nothing"
        return "pair" if len(self.settings) > 1 else "cause"


@dataclass(frozen=True)
class Score:
    """How one run did. right: the planted cause comes first; proved: it has the status that it must have. false: what
    was confirmed and may not be, and decoys that were changed for good. rivals: which rules of one line were right."""

    right: bool
    proved: bool
    false: tuple[str, ...] = field(default=())
    rivals: Mapping[str, bool] = field(default_factory=dict)


def read(path: Path) -> Planted:
    """A planted cause from its file."""
    text = planted_programs.expanded(path.read_text())
    tables = tomllib.loads(text)
    expected = tables.pop("planted")
    for name in ("first", "settings"):
        expected[name] = tuple(expected.get(name, ()))
    return Planted(path.stem, validate(tables, text=text, name=path.name), **expected)


def score(planted: Planted, found: Investigation) -> Score:
    """Compare what was found with what was planted."""
    findings = [finding for one in found.rounds for finding in one.findings]
    confirmed = {finding.id for finding in findings if finding.status == "confirmed"}
    fooled = {f"decoy {name}" for name in kept_settings(found) & planted.decoys}
    first = first_finding(found)
    seen = not planted.flag or 2 * found.quality.flags.get(planted.flag, 0) >= found.quality.steps
    right = seen and first is not None and first.id in planted.first
    if not planted.first:
        nothing = seen and not confirmed and found.gain is None
        return Score(right=nothing, proved=True, false=tuple(sorted(confirmed | fooled)))
    statuses = {finding.status for finding in findings if finding.id in planted.first}
    may_be = planted.first if planted.status != "helped" else ()
    if planted.sham:
        unmoved = found.gain is None and not statuses & {"confirmed", "helped"}
        return Score(right=right, proved=unmoved, false=tuple(sorted(confirmed | fooled)))
    return Score(
        right=right,
        proved=planted.status in statuses and kept_settings(found).issuperset(planted.settings),
        false=tuple(sorted(confirmed.difference(may_be) | fooled)),
    )


def kept_settings(found: Investigation) -> set[str]:
    """What the kept remedies have changed."""
    kept = [trial.remedy for one in found.rounds for trial in one.tried if trial.kept]
    return {change.setting for remedy in kept for change in remedy.changes if change.needed}


def first_finding(found: Investigation) -> Finding | None:
    """What was held to be the cause at first."""
    findings = found.rounds[0].findings
    return findings[0] if findings else None


@contextmanager
def without_effect(planted: Planted) -> Iterator[None]:
    """Where it is a sham, every remedy starts the server with settings that give nothing, and changes nothing else."""
    usual = dict(BUILDERS)
    if planted.sham:
        BUILDERS.update({cause: (_sham_of(cause, planted.sham),) for cause in usual})
    try:
        yield
    finally:
        BUILDERS.update(usual)


def _sham_of(cause: str, settings: Mapping[str, SettingValue]) -> Callable[[Situation], Remedy]:
    def build(situation: Situation) -> Remedy:
        changes = tuple(
            Change("server", name, situation.effective.get(name), value, why="a start without the change")
            for name, value in settings.items()
        )
        return Remedy(f"{cause}.sham", f"a start without the change for {cause}", (cause,), changes, Price())

    return build


@contextmanager
def strangers(count: int) -> Iterator[None]:
    """Processes outside the study that use a CPU each. count: their number."""
    processes = [subprocess.Popen([sys.executable, "-I", "-S", "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def row(planted: Planted, found: Investigation, result: Score, steps: Sequence[Step]) -> str:
    """One line of the table. steps: of its run."""
    first = first_finding(found)
    finding = f"{first.id} ({first.status})" if first else found.outcome.kind
    ratio = f"{found.gain.ratio:.2f}" if found.gain else "-"
    interval = f"{found.gain.low:.2f} to {found.gain.high:.2f}" if found.gain else "-"
    flagged = f"{sum(bool(step.flags) for step in steps)} of {len(steps)}"
    besides = ", ".join(f"{name} (false)" for name in result.false) or "-"
    return (
        f"{planted.name:26} {finding:38} {_word(result.right):>6} {_word(result.proved):>7} {besides:26} {ratio:>6} "
        f"{interval:>14} {flagged:>9} {found.seconds:>8.0f}"
    )


def _word(holds: bool) -> str:
    return "yes" if holds else "no"


def run(planted: Planted, runs: Path) -> Score:
    """Investigate one planted cause and print its line. A study that cannot be carried out is scored as missed."""
    try:
        with strangers(planted.strangers), without_effect(planted):
            found = loadframe.investigate(planted.study, runs)
    except UserError as error:
        return missed(planted, str(error))
    return told(planted, found, loadframe.open_run(Path(found.run)).steps())


def missed(planted: Planted, why: str) -> Score:
    """Say why there is no investigation of it; its score."""
    print(f"{planted.name:26} {why}", flush=True)
    return Score(right=False, proved=False)


def told(planted: Planted, found: Investigation, steps: Sequence[Step], after: str = "") -> Score:
    """Print its line, with what is to come after it; its score. steps: of its run."""
    result = score(planted, found)
    if planted_rivals.rules_of(planted.study.target.kind):
        result = replace(result, rivals=planted_rivals.scored(planted, found.rounds[0].curve, steps))
    print(row(planted, found, result, steps) + after, flush=True)
    return result


def on_hosts(fleet: Path, chosen: Sequence[Planted], times: int, *, on_each: bool, runs: Path) -> list[Score]:
    """These on the hosts of a fleet. UserError where they are not there."""
    declared = load_fleet(fleet)
    hosts = [each.name for each in declared.with_role("trial")] if on_each else [""]
    ones = [one for one in chosen for _ in range(times) for _ in hosts]
    asked = [Asked(one.study, host) for one in chosen for _ in range(times) for host in hosts]
    by_host: dict[str, list[Score]] = {}

    def ended(done: Done) -> None:
        one, found = ones[done.work.number - 1], done.investigation
        after = f" {done.host}"
        result = missed(one, f"{done.failed}{after}") if found is None else told(one, found, done.steps, after)
        by_host.setdefault(done.host, []).append(result)

    run = RunFolder.create(runs, f"planted-{declared.fleet.name}")
    try:
        with investigations_over(declared, [one.study for one in chosen]) as investigations:
            investigations(asked, run, Silent(), ended)
    finally:
        run.close()
    print("", *investigations.notes, sep="\n")
    for host, results in sorted(by_host.items()):
        print(f"on host {host}: {totals(results)}")
    return [result for results in by_host.values() for result in results]


def totals(results: Sequence[Score]) -> str:
    """Of these runs, in words."""
    right, proved = (sum(getattr(one, name) for one in results) for name in ("right", "proved"))
    false = sum(bool(one.false) for one in results)
    return (
        f"right first: {right} of {len(results)} (goal: {RIGHT_FIRST:.0%}); proved as far as it can be: {proved} of "
        f"{len(results)}; runs with a false confirmation: {false} (goal: {FALSE_CONFIRMATIONS})"
    )


def kinds(text: str) -> tuple[str, ...]:
    """Of an argument. ArgumentTypeError for a kind that there is none of."""
    chosen = tuple(text.split(","))
    if unknown := [name for name in chosen if name not in KINDS]:
        raise argparse.ArgumentTypeError(f"there is no kind {unknown[0]!r}; there are: {', '.join(KINDS)}")
    return chosen


def _skipped(planted: Planted) -> bool:
    """Whether a program is missing, which is said."""
    tables = planted_programs.studies().get(planted.name)
    missing = planted_programs.lacking(tables) if tables is not None else planted_programs.lacking_here(planted.study)
    if missing:
        print(f"{planted.name:26} skipped: this machine has no {', '.join(missing)}", flush=True)
    return bool(missing)


def _is_of_this_machine(planted: Planted) -> bool:
    """Whether it cannot be investigated on another host, which is said."""
    if alone := planted.kind in OF_THIS_MACHINE:
        print(f"{planted.name:26} left out: a {planted.kind} is of the machine of this command", flush=True)
    return alone


def main() -> int:
    """Run the planted causes, print the table and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them without any")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--runs", type=Path, help="keep the run folders here")
    parser.add_argument("--kinds", type=kinds, default=KINDS, help=f"only these, of {', '.join(KINDS)}")
    parser.add_argument("--fleet", type=Path, metavar="FILE", help="on the hosts of this fleet, each whole on one")
    parser.add_argument("--on-each", action="store_true", help="with --fleet: each on every host")
    parser.add_argument("--list", action="store_true", help="say what is planted, run nothing")
    arguments = parser.parse_args()
    known = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
    if unknown := sorted(set(arguments.names) - known.keys()):
        parser.error(f"there is no {FOLDER.name}/{unknown[0]}.toml; there are: {', '.join(known)}")
    chosen = [one for name in arguments.names or known if (one := read(known[name])).kind in arguments.kinds]
    if arguments.list:
        for planted in chosen:
            print(f"{planted.name:26} {planted.kind:9} {planted.cause}")
        return 0
    if arguments.on_each and arguments.fleet is None:
        parser.error("--on-each is for --fleet FILE")
    loadframe.sweep_leftovers()
    planted_programs.build()
    print(HEAD + (" host" if arguments.fleet else ""), flush=True)
    chosen = [one for one in chosen if not _skipped(one) and not (arguments.fleet and _is_of_this_machine(one))]
    with tempfile.TemporaryDirectory() as folder:
        runs, times = arguments.runs or Path(folder), arguments.times
        if arguments.fleet is None:
            results = [run(one, runs) for one in chosen for _ in range(times)]
        else:
            try:
                results = on_hosts(arguments.fleet, chosen, times, on_each=arguments.on_each, runs=runs)
            except UserError as error:
                print(f"{error}", file=sys.stderr)
                return 1
    print(f"\n{totals(results)}")
    for rule in {**planted_rivals.RULES, **planted_rivals.RULES_OF_FAMILY}:
        tried = [one.rivals[rule] for one in results if rule in one.rivals]
        if tried:
            print(f"the rule `{rule}`: right in {sum(tried)} of {len(tried)}")
    right, false = sum(one.right for one in results), sum(bool(one.false) for one in results)
    return 0 if right >= RIGHT_FIRST * len(results) and false <= FALSE_CONFIRMATIONS else 1


if __name__ == "__main__":
    sys.exit(main())
