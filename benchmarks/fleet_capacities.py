"""The capacity with several settings on the hosts of a fleet: python benchmarks/fleet_capacities.py [--budget 20s]

Two workers of dask on this machine stand in for hosts. The service answers POOL requests at a time, each in 20 ms, so
that n clients wait n / POOL times as long: as given (a pool of 2) eight clients meet a limit of 90 ms, and nine do not;
with a pool of 8 it is 32, with one of 1 four. Prints what each search took, how alike the hosts were, and whether each
alternative has the decision and the ratio that are true. Ends with 1 where one has not.

The command takes one search here, at least nine on the hosts, one after another (three blocks: each host alone, then
both together), and those of the alternatives. A search on a busy machine takes its whole budget, as each trial that
misses is made again twice; on a quiet one a search takes 10 to 14 s. So eleven budgets are what the whole may take,
and more where three blocks do not show that the hosts are alike.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / "tests" / each) for each in ("fleet", "commands")]

from workers import attempts, begun, laboratory

SERVICE = """
import asyncio, json, os, sys

pool = int(os.environ.get("POOL", "2"))

async def serve():
    room = asyncio.Semaphore(pool)  # who came first is served first

    async def speak(reader, writer):
        try:
            while True:
                path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1]
                answer = b"done"
                if path == b"/config":
                    answer = json.dumps({"pool": pool}).encode()
                else:
                    async with room:
                        await asyncio.sleep(0.02)
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(answer), answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    async with server:
        await server.serve_forever()

asyncio.run(serve())
"""
MORE = """
[objective]
within = { latency_p95_ms = 90 }
[[alternative]]
name = "larger"
target = { settings = { pool = 8 } }
[[alternative]]
name = "smaller"
target = { settings = { pool = 1 } }
"""
AS_GIVEN = ["load.levels=[1, 64]", "measure.precision=0.2"]
TRUE = {"larger": ("better", 4.0), "smaller": ("worse", 0.5)}
NEAR = 1.3
"""A ratio this close to the true one is right: levels are whole clients."""


def searched(folder: Path, budget: str) -> tuple[dict[str, Any], float]:
    """What the command says, and the seconds that it took."""
    place = laboratory(folder, window="300ms", budget=budget, more=MORE)
    (place / "service.py").write_text(SERVICE, encoding="utf-8")
    sets = [word for each in AS_GIVEN for word in ("--set", each)]
    began = time.monotonic()
    with begun(place, "capacity", *sets) as process:
        try:
            out, said = process.communicate()
        finally:
            process.send_signal(signal.SIGINT)  # nothing, where it has ended
    if not out:
        raise SystemExit(said)
    found: dict[str, Any] = json.loads(out)
    return found, time.monotonic() - began


def told_of_searches(folder: Path) -> None:
    """How many there were of each purpose, and what they took."""
    took = defaultdict[str, list[float]](list)
    trials = defaultdict[str, list[int]](list)
    for each in attempts(folder):
        took[each["purpose"]].append(each["ended_s"] - each["began_s"])
        trials[each["purpose"]].append(len(each["capacity"]["trials"]) if each["capacity"] else 0)
    for purpose, seconds in took.items():
        counted = ", ".join(map(str, trials[purpose]))
        print(f"{purpose}: {len(seconds)} searches of {min(seconds):.0f} to {max(seconds):.0f} s; trials: {counted}")


def main() -> int:
    """Search, and hold what was found against what is true."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="20s", help="of each search")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="lf", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "here"
        found, lasted_s = searched(folder, arguments.budget)
        told_of_searches(folder)
    print(f"it ended after {lasted_s:.0f} s")
    if "beside" not in found:
        print(f"{found.get('message')}\n{found.get('remedy')}")
        return 1
    here = found["capacity"]
    print(f"here: {here['load']:g} clients ({here['low']:g} to {here['high']:g}), true: 8")
    for each in (*found["hosts"]["hosts"], *found["hosts"]["together"]):
        print(f"{each['host']} beside {each['beside']}: {each['ratio']:.2f} ({each['low']:.2f} to {each['high']:.2f})")
    wrong = 0
    for one in found["beside"]:
        decision, true = TRUE[one["name"]]
        verdict = one["verdict"]
        right = verdict["decision"] == decision and true / NEAR <= (verdict["ratio"] or 0.0) <= true * NEAR
        wrong += not right
        print(f"{one['name']} on {one['host']}: {verdict['decision']}, {verdict['ratio']} ({verdict['low']} to "
              f"{verdict['high']}), true: {decision}, {true:g}{'' if right else ' - wrong'}")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
