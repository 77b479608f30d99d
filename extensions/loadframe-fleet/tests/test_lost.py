"""A coordinator that is killed, and a link that is cut: the agents end by themselves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import network
import pytest
from daemons import SSHD, ssh_daemon
from network import Network

from loadframe.host.environment import python
from waiting import await_that

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
ENDS_WITHIN_S = 30
"""Of a lease of 5 s, on a machine that has other things to do."""


def gone(number: int) -> bool:
    until = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def number_in(path: Path) -> int:
    return int(await_that(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), f"{path}"))


def program(folder: Path) -> Path:
    """An agent's program that writes its number down."""
    path = folder / "agent"
    path.write_text(f"#!/bin/sh\necho $$ > {folder}/pid\nexec {' '.join(python('loadframe_fleet.agent'))}\n")
    path.chmod(0o755)
    return path


def test_after_kill_9_of_the_coordinator_no_agent_stays(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(
        f'[fleet]\nname = "lab"\n[[host]]\nname = "a"\nroles = ["driver"]\nby = ["env"]\n'
        f'loadframe = "{program(tmp_path)}"\nauthorised = true\nowner = "this test"\n'
    )
    done = subprocess.Popen(
        [LOADFRAME, "fleet", "check", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    agent = number_in(tmp_path / "pid")
    done.send_signal(signal.SIGKILL)
    done.wait()
    assert gone(agent)


COORDINATOR = """
import sys
from pathlib import Path
from loadframe.errors import FleetError
from loadframe_fleet.connection import Agent
from loadframe_fleet.declaration import HostTable
host = HostTable(name="far", roles=["target"], ssh="laboratory-target", loadframe=sys.argv[2])
with Agent(host, Path(sys.argv[1])) as agent:
    print("up", flush=True)
    sys.stdin.readline()
    try:
        agent.ask("cpus", 3, seconds=1)
    except FleetError as error:
        print(error.fact, flush=True)
"""


@pytest.fixture
def lan() -> Iterator[Network]:
    with Network(["coordinator", "target"]) as made:
        yield made


@pytest.mark.long
@pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")
@pytest.mark.skipif(SSHD is None, reason="no sshd is installed")
def test_where_the_link_is_cut_the_agent_ends_and_the_coordinator_says_so(lan: Network, tmp_path: Path) -> None:
    with ssh_daemon(lan, "target", tmp_path) as config:
        process = subprocess.Popen(
            [*lan.within("coordinator"), sys.executable, "-c", COORDINATOR, str(config), str(program(tmp_path))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "up\n"
        agent = number_in(tmp_path / "pid")
        assert not gone_now(agent)
        lan.cut("target")
        process.stdin.write("\n")
        process.stdin.flush()
        assert "has not answered 'cpus' within 3 s" in process.stdout.readline()
        assert gone(agent)
        process.communicate(timeout=60)
        assert process.returncode == 0


def gone_now(number: int) -> bool:
    return not Path(f"/proc/{number}").exists()


def test_an_agent_that_is_called_by_hand_says_what_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [LOADFRAME, "fleet", "agent"], input="", capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["schema"] == "loadframe.agent/2"
