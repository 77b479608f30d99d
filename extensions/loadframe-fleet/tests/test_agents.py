"""An agent and its coordinator, as processes: greetings, answers, leases, and what goes wrong with either."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from loadframe.errors import FleetError
from loadframe.host.environment import python
from loadframe_fleet.clocks import offset
from loadframe_fleet.connection import Agent
from loadframe_fleet.declaration import HostTable
from loadframe_fleet.transport import OverAgents
from loadframe_fleet.wire import AGENT, LEASE_S, SILENT_S

AGENT_COMMAND = python("loadframe_fleet.agent")


def host(*by: str) -> HostTable:
    return HostTable(name="h", roles=["driver"], by=list(by), loadframe="x")


def scripted(tmp_path: Path, body: str) -> HostTable:
    """A host whose agent is started by a script of the test."""
    path = tmp_path / "start"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return host(str(path))


@pytest.fixture
def here() -> HostTable:
    return HostTable(name="h", roles=["driver"], here=True)


def test_it_greets_and_answers(here: HostTable) -> None:
    with Agent(here) as agent:
        assert agent.facts["cpus"] >= 1
        wall, monotonic = (offset(each) for each in agent.exchanges(20))
        assert abs(wall.offset_s) <= wall.uncertainty_s + 0.05  # the clocks are read one after the other
        assert abs(monotonic.offset_s) <= monotonic.uncertainty_s
        used = agent.ask("cpus", 30, seconds=0.2)
        assert used["busy_cpus"] >= 0 and used["steal_cpus"] >= 0


def test_an_unknown_question_and_a_wrong_one_are_answered_in_words(here: HostTable) -> None:
    with Agent(here) as agent:
        with pytest.raises(FleetError, match="no answer to 'sing'"):
            agent.ask("sing", 10)
        with pytest.raises(FleetError, match="KeyError"):
            agent.ask("cpus", 10)
        with pytest.raises(FleetError, match="cannot answer 'listen'"):
            agent.ask("listen", 10, address="192.0.2.1", certificate="x", key="x")
        assert agent.ask("listen_no_more", 10) == {}


@pytest.mark.parametrize("last", ["", "printf 'no end of line: '", "printf '\\033]0;title\\007'"])
def test_what_a_login_shell_prints_is_skipped(tmp_path: Path, last: str) -> None:
    words = " ".join(AGENT_COMMAND)
    with Agent(scripted(tmp_path, f"echo 'Welcome'; echo '{{\"news\": 1}}'; {last}\nexec {words}")) as agent:
        assert agent.facts["schema"] == AGENT


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("echo 'no such program' >&2; exit 127", "its agent has not started"),
        ('echo \'{"schema": "loadframe.agent/99"}\'; sleep 5', "speaks loadframe.agent/99"),
        ("yes nonsense", "lines came, and no agent's greeting"),
        ("echo 'no such program for this account'", "its agent has not started"),
        (
            "head -c 4300000 /dev/zero; sleep 5",
            "a line has more than 4,194,304 bytes, and no agent's greeting has come",
        ),
    ],
)
def test_a_host_without_an_agent_is_told(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(FleetError) as error:
        Agent(scripted(tmp_path, body))
    assert told in error.value.fact
    assert "Try it by hand" in error.value.remedy
    assert "no such program" in error.value.details or "no such program" not in body


@pytest.mark.parametrize(
    "said", ["bash: line 1: loadframe: command not found", "sh: 1: /opt/x: No such file or directory"]
)
def test_a_host_on_which_the_program_is_not_found_is_told_with_the_key_for_its_path(tmp_path: Path, said: str) -> None:
    with pytest.raises(FleetError) as error:
        Agent(scripted(tmp_path, f"echo '{said}' >&2; exit 127"))
    assert "write its path as `loadframe`" in error.value.remedy and said in error.value.details


def test_of_many_words_the_first_and_the_last_are_told(tmp_path: Path) -> None:
    """A host that prints without an end fills no disk of the coordinator's."""
    body = "echo 'Permission denied' >&2; head -c 20000000 /dev/zero >&2; echo 'and no such program' >&2; exit 127"
    with pytest.raises(FleetError) as error:
        Agent(scripted(tmp_path, body))
    said = error.value.details
    assert said.startswith("Permission denied") and said.endswith("and no such program\n")
    assert "bytes are left out" in said and len(said) < 4000


def test_what_holds_its_errors_open_keeps_no_one_waiting(tmp_path: Path) -> None:
    """ssh may leave a process behind that serves the next connection (ControlPersist)."""
    begun = time.monotonic()
    with pytest.raises(FleetError) as error:
        Agent(scripted(tmp_path, "echo 'no such program' >&2; sleep 15 > /dev/null & exit 127"))
    assert "no such program" in error.value.details
    assert time.monotonic() - begun < 10


def test_a_program_that_is_missing_is_told() -> None:
    with pytest.raises(FleetError, match="cannot be reached"):
        Agent(host("/nowhere/at/all"))


def test_an_agent_that_is_killed_is_told_to_who_waits(tmp_path: Path) -> None:
    words = " ".join(AGENT_COMMAND)
    with Agent(scripted(tmp_path, f"echo $$ > {tmp_path}/pid; exec {words}")) as agent:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        with pytest.raises(FleetError, match="has gone"):
            agent.ask("cpus", 60, seconds=30)


def test_a_host_that_does_not_answer_in_time_is_told(tmp_path: Path) -> None:
    words = " ".join(AGENT_COMMAND)
    with Agent(scripted(tmp_path, f"echo $$ > {tmp_path}/pid; exec {words}")) as agent:
        number = int((tmp_path / "pid").read_text())
        os.kill(number, signal.SIGSTOP)
        try:
            with pytest.raises(FleetError, match="has not answered 'cpus' within 1 s"):
                agent.ask("cpus", 1, seconds=0)
        finally:
            os.kill(number, signal.SIGCONT)


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(AGENT_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_it_ends_when_its_coordinator_is_gone() -> None:
    process = started()
    assert json.loads(process.stdout.readline())["schema"] == AGENT  # type: ignore[union-attr]
    process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.long
def test_it_ends_when_its_coordinator_is_silent_whatever_it_does() -> None:
    """The link is cut: nothing closes the stream."""
    process = started()
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdin.write(b'{"id": 1, "ask": "cpus", "seconds": 50}\n')
    process.stdin.flush()
    begun = time.monotonic()
    process.wait(30)
    assert time.monotonic() - begun > LEASE_S - 1
    assert b"said nothing for 5 s" in process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


@pytest.mark.long
def test_it_ends_when_its_coordinator_takes_no_answer_though_it_asks() -> None:
    """Nothing that an agent sends may wait for ever, as it would not see that its lease is over."""
    process = started()
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    until = time.monotonic() + 40
    with pytest.raises(BrokenPipeError):
        while time.monotonic() < until:
            process.stdin.write(b'{"id": 1, "ask": "clock"}\n' * 100)
            process.stdin.flush()
    assert process.wait(5) == 0
    assert b"taken nothing for 5 s" in process.stderr.read()
    for stream in (process.stdout, process.stderr):
        stream.close()
    with pytest.raises(BrokenPipeError):
        process.stdin.close()


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b'{"ask": \n', b"\xff\xfe\n"])
def test_it_ends_where_its_coordinator_is_none(line: bytes) -> None:
    _, said = started().communicate(line, timeout=20)
    assert b"is no message" in said


@pytest.mark.long
def test_of_a_rack_that_is_cut_off_no_host_keeps_the_others_waiting(tmp_path: Path) -> None:
    """Its loads go on until they are told to end: half a second for each lost host's last words is too long."""
    words = " ".join(AGENT_COMMAND)
    with Agent(scripted(tmp_path, f"echo $$ > {tmp_path}/pid; exec {words}")) as agent:
        number = int((tmp_path / "pid").read_text())
        transport = OverAgents({"h": agent})
        os.kill(number, signal.SIGSTOP)
        try:
            came = transport.arrived(time.monotonic() + 60)
            assert came is not None and "nothing has come" in came.gone
            begun = time.monotonic()
            numbers = {transport.ask("h", "cancel", {}) for _ in range(20)}
            assert time.monotonic() - begun < 5.0
        finally:
            os.kill(number, signal.SIGCONT)
        told = [transport.arrived(time.monotonic() + 5) for _ in numbers]
        assert all(each is not None and each.gone for each in told), "once more for each question"


@pytest.mark.long
def test_an_agent_that_takes_no_question_is_lost_and_keeps_no_one_waiting(tmp_path: Path) -> None:
    """Its link, or ssh, has stopped: what is written waits in a pipe that is full."""
    greeting = json.dumps({"schema": AGENT})
    with Agent(scripted(tmp_path, f"echo '{greeting}'; exec sleep 60")) as agent:
        begun = time.monotonic()
        with pytest.raises(FleetError, match="has gone"):
            agent.ask("set_up", 60, study="x" * 1_000_000)
        assert time.monotonic() - begun < 3 * SILENT_S
        assert "nothing" in agent.lost and f"for {SILENT_S:g} s" in agent.lost
