"""A real run for benchmarks/watch.py --live: `loadframe watch` beside a small render farm (watch_pool.py) to which jobs
are added, one after the other, until its pool is full; told is at how many of them the watch spoke.

A job submits about every 10 s and takes a place of the pool for about 1 s of these, so that the pool of 16 is full at
160 jobs: by the utilisation law, as its places in use are the jobs times 1 s / 10 s. Almost no CPU is used.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from loadframe_watch.days import lines

POOL, HELD_S, CYCLE_S = 16, 1.0, 10.0
FULL_AT = POOL * CYCLE_S / HELD_S
FIRST, MOST = 40, 1.15 * FULL_AT
IN_TIME, RIGHT = 0.8, 0.15
STUDY = """
[study]
name = "small-farm"
question = "At how many jobs is its pool full?"
[target]
kind = "service"
pid = {pid}
listen = "127.0.0.1:{port}"
[[target.metrics]]
prometheus = "http://127.0.0.1:{port}/metrics"
requests = ["submissions_total"]
[[target.limit]]
name = "pool"
title = "Places of the farm's pool"
use = "pool_in_use"
ceiling = "pool_size"
[workload]
kind = "http"
[[workload.request]]
path = "/submit"
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
budget = "10s"
[watch]
every = "1m"
load = "active_jobs"
"""


async def job(port: int, draw: random.Random) -> None:
    """Submit, think, submit again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            await asyncio.sleep(draw.expovariate(1 / (CYCLE_S - HELD_S)))
            writer.write(b"GET /submit HTTP/1.1\r\nHost: farm\r\nJob: 1\r\n\r\n")
            await writer.drain()
            await reader.readuntil(b"done\n")
    finally:
        writer.close()


async def followed(folder: Path, minutes: float, flat: float) -> list[tuple[dict[str, Any], int, float]]:
    """The alarms, each with the jobs at its time and the minute. flat: minutes at FIRST jobs before any is added."""
    farm = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name("watch_pool.py")), str(POOL), str(HELD_S),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert farm.stdout is not None and farm.stdin is not None
    port = int(await farm.stdout.readline())
    study = folder / "study.toml"
    study.write_text(STUDY.format(pid=farm.pid, port=port))
    loadframe = str(Path(sys.executable).with_name("loadframe"))
    watch = await asyncio.create_subprocess_exec(
        loadframe, "watch", str(study), "--folder", str(folder / "watched"), "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    draw, began_s, jobs = random.Random(11), time.monotonic(), set[asyncio.Task[None]]()
    told: list[tuple[dict[str, Any], int, float]] = []
    try:
        while (passed := (time.monotonic() - began_s) / 60) < flat + minutes and watch.returncode is None:
            wanted = FIRST + (MOST - FIRST) * max(0.0, passed - flat) / minutes
            while len(jobs) < wanted:
                jobs.add(asyncio.create_task(job(port, draw)))
            known = list(lines(folder / "watched", kinds=("alarm",))) if (folder / "watched").exists() else []
            for one in known[len(told) :]:
                told.append((dict(one.data), len(jobs), passed))
                print(f"  minute {passed:5.1f}, {len(jobs)} jobs: {one.data['alarm']}: {one.data['title']}", flush=True)
            await asyncio.sleep(1)
        if watch.returncode is not None and watch.stderr is not None:
            raise RuntimeError((await watch.stderr.read()).decode())
        watch.terminate()
        out, _ = await watch.communicate()
        print(f"  it took {json.loads(out)['cost']}")
        return told
    finally:
        for one in jobs:
            one.cancel()
        farm.stdin.close()
        await farm.wait()


def judge_live(minutes: float, flat: float) -> bool:
    """Whether the pool was named at least 20 % before it was full, with the right number of jobs."""
    print(f"A small farm whose pool is full at {FULL_AT:.0f} jobs: {FIRST} jobs for {flat:g} minutes, then up to "
          f"{MOST:.0f} within {minutes:g}", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        told = asyncio.run(followed(Path(folder), minutes, flat))
    ahead = [
        (alarm, jobs)
        for alarm, jobs, _ in told
        if alarm["alarm"] == "limit-ahead" and abs(alarm["at_load"]["load"] / FULL_AT - 1) <= RIGHT
    ]
    met = bool(ahead) and ahead[0][1] <= IN_TIME * FULL_AT
    at = f"at {ahead[0][1]} jobs, {ahead[0][1] / FULL_AT:.0%} of it" if ahead else "never"
    print(f"  named {at}: {'met' if met else 'MISSED'}\n")
    return met
