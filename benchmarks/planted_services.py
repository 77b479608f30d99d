"""The planted services by themselves: python benchmarks/planted_services.py [--seconds S] [--list] [NAME...]

Starts each service of benchmarks/planted/*.toml (kind = "service") as its study says, but by means of its own and not
by Loadframe, and loads it with wrk: it shows that the planted cause bends the service, that its knob lifts it, and that
its decoys do nothing. benchmarks/planted/services/README.md has a table of one run.

    at 1, at most   answers/s without an error with one connection, and with as many as the study's highest level
    failed          of all answers at most, where some failed
    raised          at most, with the settings that [planted] names as far up as the study allows (started again)
    decoys          at most, with every other setting at its other end
    again at 1      at the end, as a share of the first: below 1 where the cost grows with time or requests
    as planted      raised >= 1.3 times as many, decoys 0.8 to 1.25 times; grown (below 0.88) where that is planted

It ends with 1 where a service is not as planted. Each takes about 15 s; a service whose program is missing is skipped.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from planted_programs import Running, Settings, Tables, build, lacking, own, started, studies

LIMIT = "RLIMIT_NOFILE"
PLENTY_OF_FILES = 4096
WARM_UP_S = 1
LIFTED, ALIKE, GROWN, STEADY = 1.3, (0.8, 1.25), 0.88, 0.7


def changed(tables: Tables, *, lifted: bool) -> tuple[Settings, int | None]:
    """The settings with the other end of those that lift the cause, or of the decoys, and the limit of open files."""
    moves = tables["planted"].get("settings", ())
    target = tables["target"]
    given = target.get("settings", {})
    files = tables.get("cage", {}).get("open_files")
    values = {
        name: spec["values"][-1] if (name in moves) == lifted else given[name]
        for name, spec in target.get("setting", {}).items()
    }
    return values, PLENTY_OF_FILES if lifted and LIMIT in moves else files


@dataclass(frozen=True)
class Load:
    """What wrk counted: answers per second without an error, and the share of those with one."""

    per_s: float
    failed: float


def load(port: int, connections: int, seconds: int, *, short: bool) -> Load:
    """Load a service in a closed loop. short: a connection for each request."""
    command = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
    command += ["--timeout", "5s", *(["--header", "Connection: close"] if short else [])]
    said = subprocess.run([*command, f"http://127.0.0.1:{port}/"], check=True, capture_output=True, text=True).stdout
    answered = re.search(r"(\d+) requests in ([\d.]+)s", said)
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    if answered is None:
        raise RuntimeError(f"wrk counted nothing: {said}")
    count, failed = int(answered[1]), int(wrong[1]) if wrong else 0
    return Load((count - failed) / float(answered[2]), failed / count if count else 0.0)


@dataclass(frozen=True)
class Row:
    """One service."""

    one: Load
    most: Load
    raised: Load | None
    decoys: Load | None
    again: float
    planted: bool


def checked(tables: Tables, seconds: int) -> Row:
    """Load one service as it is planted, with its knob raised, and with its decoys moved."""
    levels: Sequence[int] = tables["load"]["levels"]
    short = not tables["workload"].get("options", {}).get("keep_alive", True)
    moves = tables["planted"].get("settings", ())
    given, files = tables["target"].get("settings", {}), tables.get("cage", {}).get("open_files")

    def at_most(settings: Settings, limit: int | None) -> Load:
        with started(tables, settings, limit) as other:
            _agree(other, own(tables, settings))
            load(other.port, levels[-1], WARM_UP_S, short=short)
            return load(other.port, levels[-1], seconds, short=short)

    with started(tables, given, files) as running:
        _agree(running, own(tables, given))
        load(running.port, levels[-1], WARM_UP_S, short=short)
        one = load(running.port, levels[0], seconds, short=short)
        most = load(running.port, levels[-1], seconds, short=short)
        again = load(running.port, levels[0], seconds, short=short).per_s / one.per_s
    raised = at_most(*changed(tables, lifted=True)) if moves else None
    decoys = at_most(*changed(tables, lifted=False)) if given.keys() - set(moves) else None
    growing = any(name.startswith("growth.") for name in tables["planted"].get("first", ()))
    right = (
        (raised is None or raised.per_s >= LIFTED * most.per_s)
        and (decoys is None or growing or ALIKE[0] <= decoys.per_s / most.per_s <= ALIKE[1])
        and (again < GROWN if growing else again > STEADY)
    )
    return Row(one, most, raised, decoys, again, right)


def _agree(running: Running, settings: Settings) -> None:
    """RuntimeError where a service says something else of its settings than it was given."""
    said = {name: str(value) for name, value in running.config().items() if name in settings}
    asked = {name: str(value) for name, value in settings.items()}
    if said != asked:
        raise RuntimeError(f"{running.process.args!r} was given {asked} and says {said}")


HEAD = (
    f"{'service':28} {'first finding':26} {'at 1':>8} {'at most':>8} {'failed':>7} {'raised':>8} {'decoys':>8} "
    f"{'again':>6} {'as planted':>10}"
)


def line(name: str, tables: Tables, row: Row) -> str:
    """One line of the table."""
    first = (tables["planted"].get("first") or ["nothing"])[0]
    others = " ".join(f"{'-' if one is None else format(one.per_s, ',.0f'):>8}" for one in (row.raised, row.decoys))
    return (
        f"{name:28} {first:26} {row.one.per_s:>8,.0f} {row.most.per_s:>8,.0f} {row.most.failed:>7.0%} {others} "
        f"{row.again:>6.2f} {'yes' if row.planted else 'NO':>10}"
    )


def main() -> int:
    """Check the named services, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them without any")
    parser.add_argument("--seconds", type=int, default=3, help="of each load")
    parser.add_argument("--list", action="store_true", help="say what is planted, run nothing")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of what ends the services
    known = studies()
    if unknown := sorted(set(arguments.names) - known.keys()):
        parser.error(f"there is no service {unknown[0]}; there are: {', '.join(known)}")
    if arguments.list:
        for name, tables in known.items():
            print(f"{name:28} {tables['planted']['cause']}")
        return 0
    build()
    print(HEAD, flush=True)
    wrong = 0
    for name in arguments.names or known:
        if missing := lacking(known[name]):
            print(f"{name:28} skipped: this machine has no {', '.join(missing)}", flush=True)
            continue
        row = checked(known[name], arguments.seconds)
        wrong += not row.planted
        print(line(name, known[name], row), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
