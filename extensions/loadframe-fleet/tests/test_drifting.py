"""A host whose clock runs faster than the coordinator's: a library of the test's own, loaded before all others into the
processes of its agent, answers clock_gettime(2) for CLOCK_MONOTONIC. (libfaketime does as much, but the timed waits of
Python 3.11 never return under it.)"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stations import LOADFRAME, Laboratory, Station, paced

PACE_S = 0.02
AHEAD_S = 2.0
SOURCE = """
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static long long since = 0, millionths = 0;
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (failed || clock != CLOCK_MONOTONIC) return failed;
    if (!since) {
        millionths = atoll(getenv("DRIFT_MILLIONTHS"));
        since = atoll(getenv("DRIFT_SINCE_NS"));
    }
    long long real = now->tv_sec * 1000000000LL + now->tv_nsec;
    long long theirs = real + AHEAD_NS + (real - since) * millionths / 1000000;
    now->tv_sec = theirs / 1000000000LL;
    now->tv_nsec = theirs % 1000000000LL;
    return 0;
}
"""

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
]


@pytest.fixture(scope="module")
def library(own_state: Path) -> Path:
    """Where the user of a driver can read it."""
    made = own_state.parent / f"drift-{os.getpid()}.so"
    ahead = f"-DAHEAD_NS={int(AHEAD_S * 1e9)}LL"
    words = ["cc", "-O1", "-shared", "-fPIC", ahead, "-x", "c", "-", "-o", str(made)]
    subprocess.run(words, input=SOURCE, text=True, check=True)
    made.chmod(0o755)
    return made


@pytest.fixture
def lab(open_folder: Path) -> Iterator[Laboratory]:
    """Two drivers that are processes of this machine, with one clock."""
    with paced(PACE_S) as port:
        made = Laboratory(open_folder, [Station(name, open_folder / name) for name in ("a", "b")], port=port)
        yield made
        made.close()


def let_drift(station: Station, library: Path, millionths: int) -> None:
    """From now on its clock is ahead, and gains so many millionths."""
    station.environment |= {
        "LD_PRELOAD": str(library),
        "DRIFT_MILLIONTHS": str(millionths),
        "DRIFT_SINCE_NS": str(time.monotonic_ns()),
    }


@pytest.mark.measures
def test_a_clock_that_drifts_is_followed_and_its_host_takes_part(lab: Laboratory, library: Path) -> None:
    drift = 300e-6
    let_drift(lab.stations[1], library, 300)
    lab.measured("[4]", "2s")
    together = [step for step in lab.steps if len(step["drivers"]) == 2]
    assert len(together) >= 2
    clocks = []
    for step in together:
        own, theirs = step["drivers"]
        assert abs(own["clock"]["offset_s"]) <= own["clock"]["uncertainty_s"]
        clocks.append(clock := theirs["clock"])
        unsure_s = clock["uncertainty_s"] + clock["later_uncertainty_s"]
        gained_s = drift * (clock["later_at_s"] - clock["at_s"])
        assert abs(clock["later_s"] - clock["offset_s"] - gained_s) <= unsure_s, "it gains during the step"
        early_s = drift * (step["start_s"] - clock["at_s"])  # gained since its clock was measured
        assert theirs["requests"] and theirs["began_s"] >= step["start_s"] - early_s - unsure_s
        assert step["apart_s"] < step["unsure_s"] + 0.5
    first, last = clocks[0], clocks[-1]
    gained_s, unsure_s = last["later_s"] - first["offset_s"], first["uncertainty_s"] + last["later_uncertainty_s"]
    assert gained_s - unsure_s > 0, "the clock did drift"
    assert abs(gained_s - drift * (last["later_at_s"] - first["at_s"])) <= unsure_s
    assert first["offset_s"] == pytest.approx(AHEAD_S, abs=0.1)
    lab.await_as_before()


@pytest.mark.long
def test_a_clock_that_drifts_too_far_voids_the_step(lab: Laboratory, library: Path) -> None:
    let_drift(lab.stations[1], library, 30_000)
    process = lab.begin("[4]", "2s")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1, out + said
    told = str(json.loads(out)["message"])
    assert "void (clock-set): the clock of host 'b' moved by" in told, told
    assert [(step["void"], step["void_host"]) for step in lab.steps] == [("clock-set", "b")]
    lab.await_as_before()


@pytest.mark.long
def test_a_check_refuses_a_clock_that_drifts_too_far(lab: Laboratory, library: Path) -> None:
    let_drift(lab.stations[1], library, 30_000)
    done = subprocess.run(
        [LOADFRAME, "fleet", "check", str(lab.fleet()), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)
    (clock,) = [host["clock"] for host in found["hosts"] if host["name"] == "b"]
    assert clock["drift_low"] <= 0.03 <= clock["drift_high"]
    (problem,) = [each for each in found["problems"] if "monotonic clock" in each["fact"]]
    assert problem["about"] == "b" and problem["refuses"]
