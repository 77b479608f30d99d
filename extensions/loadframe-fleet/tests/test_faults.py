"""What becomes of a step where a link is cut, far away, or the disk of one host is full."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import network
import pytest
from daemons import SSHD, ssh_daemon
from network import Network
from stations import Laboratory, Station, paced

from waiting import await_that

RELAY = Path(__file__).with_name("relay.py")
ONE_WAY_S = 0.1
FULL_BYTES = 3 << 20
FILLING = """
import pathlib, threading, time

def fill():
    time.sleep(6)
    try:
        with pathlib.Path({path!r}).open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return

threading.Thread(target=fill, daemon=True).start()
"""
"""Another program on that host."""
pytestmark = pytest.mark.server


@pytest.fixture
def lab(open_folder: Path) -> Iterator[Laboratory]:
    """Two drivers that are processes of this machine."""
    with paced(0.02) as port:
        made = Laboratory(open_folder, [Station(name, open_folder / name) for name in ("a", "b")], port=port)
        yield made
        made.close()


def void(process: subprocess.Popen[str]) -> str:
    """What it says of its end."""
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1, out + said
    return str(json.loads(out)["message"])


@pytest.fixture
def cuttable(open_folder: Path) -> Iterator[Laboratory]:
    """Two drivers on hosts of their own; two is reached by ssh."""
    if not network.possible() or SSHD is None:
        pytest.skip("no network namespaces may be made here, or no sshd is installed")
    with Network(["coordinator", "target", "one", "two"]) as lan:
        keys = open_folder / "ssh"
        keys.mkdir(mode=0o700)
        with (
            ssh_daemon(lan, "two", keys) as config,
            paced(0.02, lan.address("target"), lan.within("target")) as port,
        ):
            one = Station("one", open_folder / "one", address=lan.address("one"), by=lan.within("one"))
            two = Station("two", open_folder / "two", address=lan.address("two"), ssh="laboratory-two")
            within = lan.within("coordinator")
            made = Laboratory(open_folder, [one, two], lan.address("target"), port, within, network=lan)
            made.about = f'ssh_config = "{config}"'
            with closing(made):
                yield made


@pytest.mark.long
def test_a_link_that_is_cut_amid_a_step_voids_it_and_both_sides_are_as_before(cuttable: Laboratory) -> None:
    process = cuttable.begin("[4]", window="60s")
    cuttable.await_load()
    cuttable.network.cut("two")
    told = void(process)
    assert "void (agent-lost)" in told and "'two'" in told, told
    cuttable.await_as_before()
    assert [step["void"] for step in cuttable.steps] == ["agent-lost"]


@pytest.mark.measures
def test_after_kill_9_of_the_coordinator_so_is_a_host_whose_link_is_cut_within_ten_seconds(
    cuttable: Laboratory,
) -> None:
    process = cuttable.begin("[4]", window="60s")
    cuttable.await_load()
    cuttable.network.cut("two")
    cuttable.kill(process)


@pytest.mark.measures
def test_a_host_200_ms_away_takes_part_and_its_clock_is_told_with_what_is_unsure(lab: Laboratory) -> None:
    lab.stations[1].by = [sys.executable, str(RELAY), str(ONE_WAY_S)]
    found = lab.measured("[4]", "2s")
    assert found["points"][0]["throughput"] > 0
    together = [step for step in lab.steps if len(step["drivers"]) == 2]
    assert together
    for step in together:
        far = {each["host"]: each for each in step["drivers"]}["b"]
        clock = far["clock"]
        assert clock["round_trip_s"] >= 2 * ONE_WAY_S
        assert abs(clock["offset_s"]) <= clock["uncertainty_s"], "both are clocks of one machine"
        assert 2 * ONE_WAY_S / 2 <= clock["uncertainty_s"] < 0.5
        assert step["apart_s"] <= step["unsure_s"] + 0.1
        assert far["requests"] > 0 and far["began_s"] >= step["start_s"] - step["unsure_s"]
    lab.await_as_before()


@pytest.mark.long
def test_a_full_disk_on_one_host_voids_the_step_and_names_it(lab: Laboratory) -> None:
    scratch = lab.stations[1].folder / "scratch"
    mount = f'mount -t tmpfs -o size={FULL_BYTES},mode=755 tmpfs {scratch} && exec "$@"'
    by = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*by, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    lab.stations[1].by = by
    lab.stations[1].before = FILLING.format(path=str(scratch / "theirs"), size=FULL_BYTES)
    told = void(lab.begin("[4]", window="12s"))
    assert "the step is void (" in told and "host 'b'" in told and "Free some space" in told, told
    lab.await_as_before()
    await_that(lambda: not lab.stations[1].processes(), "its processes have ended")
