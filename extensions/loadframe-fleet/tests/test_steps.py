"""Steps over several hosts that are processes of this machine, each with folders of its own: what they give, and what
becomes of them where one of them is lost. Whatever is lost, nothing stays on any host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stations import Laboratory, Station, paced

pytestmark = pytest.mark.server
OF_CACHES = pytest.mark.extension("loadframe_caches")

PACE_S = 0.02
URL = 'kind = "url"\nauthorised = true\nowner = "this test"'


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with paced(PACE_S) as port:
        yield port


@pytest.fixture
def lab(open_folder: Path, port: int) -> Iterator[Laboratory]:
    """Two drivers."""
    made = Laboratory(open_folder, [Station(name, open_folder / name) for name in ("a", "b")], port=port)
    yield made
    made.close()


def refused(process: subprocess.Popen[str]) -> str:
    """What it says of its end."""
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1, out + said
    return str(json.loads(out)["message"])


@pytest.mark.long
def test_drivers_share_a_level_and_begin_together(lab: Laboratory) -> None:
    found = lab.measured("[1, 5]")
    points = {each["load"]: each["throughput"] for each in found["points"]}
    assert 0.5 * 5 / PACE_S < points[5] <= 1.05 * 5 / PACE_S  # each connection waits for PACE_S at least
    for number, step in enumerate(lab.steps):
        shares = {each["host"]: each["share"] for each in step["drivers"]}
        beside_fewer = number >= 4 and shares == {"a": 5}  # behind the curve, to see whether one would have done
        assert beside_fewer or shares == ({"a": 1} if step["level"] == 1 else {"a": 3, "b": 2})
        for each in step["drivers"]:
            unsure_s = each["clock"]["uncertainty_s"] + each["clock"]["later_uncertainty_s"]
            assert each["began_s"] >= step["start_s"] - unsure_s
            assert each["requests"] and each["sent_bytes"] < each["log_bytes"] + 100
    (run,) = (lab.folder / "runs").iterdir()
    assert {path.name for path in run.glob("raw/host-*.lfr")} == {"host-a.lfr", "host-b.lfr"}
    lab.await_as_before()


@pytest.mark.long
def test_an_observer_is_recorded_and_has_its_limits_and_no_load(lab: Laboratory) -> None:
    lab.stations = [*lab.stations, Station("c", lab.folder / "c", ["observer"])]
    found = lab.measured("[4]")
    assert {each["host"] for step in lab.steps for each in step["drivers"]} == {"a", "b"}
    assert all("c" in step["watched"] and "system.cpu.utilization" in step["metrics"]["c"] for step in lab.steps)
    (run,) = (lab.folder / "runs").iterdir()
    assert (run / "raw/host-c.lfr").stat().st_size
    assert {each["host"] for each in found["fleet_limits"] if not each["driver"]} >= {"a", "b", "c"}
    assert any("Recorded along with the load: c." in words for words in found["warnings"] + found.get("notes", []))
    lab.await_as_before()


@pytest.mark.long
def test_an_observer_that_is_lost_voids_the_step(lab: Laboratory) -> None:
    lab.stations = [*lab.stations, Station("c", lab.folder / "c", ["observer"])]
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    os.kill(lab.stations[2].agent, signal.SIGKILL)
    assert "the step is void (agent-lost): host 'c' is lost" in refused(process)
    lab.await_as_before()


@pytest.mark.long
def test_an_open_loop_is_shared_out(lab: Laboratory) -> None:
    study = lab.study("[60]").read_text().replace('axis = "concurrency"', 'axis = "rate"')
    found = lab.measured("[60]", study=study)
    (point,) = found["points"]
    assert point["throughput"] == pytest.approx(60, rel=0.35)
    (step, *_) = lab.steps
    assert [each["share"] for each in step["drivers"]] == [30, 30]


@pytest.mark.long
def test_an_agent_that_is_killed_voids_the_step_and_its_host_is_as_before(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    os.kill(lab.stations[1].agent, signal.SIGKILL)
    told = refused(process)
    assert "the step is void (agent-lost): host 'b' is lost" in told
    assert [(each["void"], each["void_host"]) for each in lab.steps] == [("agent-lost", "b")]
    lab.await_as_before()


@pytest.mark.long
def test_a_worker_that_is_killed_voids_the_step_and_its_agent_cleans_up(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    (worker,) = lab.stations[0].processes("loadframe_fleet.worker")
    os.kill(worker, signal.SIGKILL)
    assert "host 'a'" in refused(process)
    lab.await_as_before()


@pytest.mark.long
def test_a_worker_that_is_stopped_voids_the_step_soon_and_its_agent_cleans_up(lab: Laboratory) -> None:
    """Its agent goes on, and answers: the end of the load would be waited for until a minute after it."""
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    (worker,) = lab.stations[0].processes("loadframe_fleet.worker")
    os.kill(worker, signal.SIGSTOP)
    began_s = time.monotonic()
    told = refused(process)
    assert time.monotonic() - began_s < 40
    assert "void (load-failed): host 'a': the worker of its agent has done nothing for 6 s" in told, told
    lab.await_as_before()


@pytest.mark.long
def test_a_driver_that_is_killed_voids_the_step(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    (driver,) = lab.stations[1].processes("wrk --threads")
    os.kill(driver, signal.SIGKILL)
    told = refused(process)
    assert "void (load-failed): host 'b'" in told and "was ended by SIGKILL" in told
    lab.await_as_before()


@pytest.mark.long
def test_a_recorder_that_is_killed_voids_the_step(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    (recorder,) = lab.stations[1].processes("loadframe.recording.recorder")
    os.kill(recorder, signal.SIGKILL)
    assert "void (recorder-failed): host 'b'" in refused(process)
    lab.await_as_before()


@pytest.mark.measures
def test_after_kill_9_of_the_coordinator_all_hosts_are_as_before_within_ten_seconds(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    lab.kill(process)


@pytest.mark.long
def test_a_coordinator_that_stands_still_is_not_waited_for(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    process.send_signal(signal.SIGSTOP)
    try:
        lab.await_as_before()
    finally:
        process.send_signal(signal.SIGCONT)
    assert "agent-lost" in refused(process)


@pytest.mark.long
def test_after_ctrl_c_all_hosts_are_as_before(lab: Laboratory) -> None:
    process = lab.begin("[4]", window="60s")
    lab.await_load()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    lab.await_as_before()


AHEAD = ["unshare", "--time", "--fork", "--monotonic", "3"]


@pytest.mark.long
def test_a_clock_that_is_off_by_three_seconds_is_measured_and_mapped(lab: Laboratory) -> None:
    if subprocess.run([*AHEAD, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no time namespaces may be made here")
    lab.stations[1].by = AHEAD
    lab.measured("[4]")
    together = [step for step in lab.steps if len(step["drivers"]) == 2]
    assert len(together) == 4, "two blocks of the curve, two beside one driver"
    for step in together:
        for each, ahead_s in zip(step["drivers"], (0.0, 3.0), strict=True):
            clock = each["clock"]
            assert abs(clock["offset_s"] - ahead_s) <= clock["uncertainty_s"] + 0.01  # it began with the seconds' rest
        assert step["apart_s"] < step["unsure_s"] + 0.5


@pytest.mark.long
def test_an_agent_whose_clock_is_not_that_of_its_load_voids_the_step(lab: Laboratory) -> None:
    lab.stations[1].before = "import time; real = time.monotonic; time.monotonic = lambda: real() + 1.5"
    told = refused(lab.begin("[4]"))
    assert "void (clock-set): host 'b' begins by a clock that is 1.5e+03 ms off" in told
    lab.await_as_before()


@pytest.mark.long
def test_another_version_is_refused_before_anything_is_loaded(lab: Laboratory) -> None:
    lab.stations[1].before = "import loadframe_fleet.looking as l; l.__version__ = '0.0.1'"
    told = refused(lab.begin("[4]"))
    assert "host 'b': Loadframe is 0.0.1 there" in told
    assert not (lab.folder / "runs").exists()
    lab.await_as_before()


@pytest.mark.long
def test_other_code_of_the_same_version_is_refused(lab: Laboratory) -> None:
    lab.stations[1].before = "import loadframe_fleet.looking as l; l.code_digest = lambda: '0123456789ab'"
    told = refused(lab.begin("[4]"))
    assert "host 'b': Loadframe has the same version there as on this machine" in told and "but other code" in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('kind = "http"', 'kind = "access-log"', "cannot be driven from a fleet"),
        pytest.param(URL, 'kind = "nginx"', "0 hosts of the fleet have the role target", marks=OF_CACHES),
        pytest.param(URL, 'kind = "squid"', "cannot load a server of kind 'squid'", marks=OF_CACHES),
    ],
)
def test_what_no_fleet_can_drive_is_refused(lab: Laboratory, old: str, new: str, told: str) -> None:
    study = lab.study("[4]").read_text()
    assert old in study
    assert told in refused(lab.begin("[4]", study=study.replace(old, new)))


@pytest.mark.long
def test_a_fleet_without_drivers_is_refused(lab: Laboratory) -> None:
    for each in lab.stations:
        each.roles = ("target",) if each is lab.stations[0] else ("observer",)
    assert "drives" in refused(lab.begin("[4]"))
