"""Ctrl-C while a private server starts, or hangs: it is killed, not asked. Its data are temporary, and it may take two
minutes over a clean end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadframe.host import identity
from waiting import await_that

Start = Callable[..., Any]

# Blocks for minutes: on a busy machine a short ladder had ended before it was interrupted.
STUDY = """
[study]
name = "tiny"
question = "How many?"
[target]
kind = "{kind}"
[workload]
kind = "{workload}"
[load]
axis = "{axis}"
levels = [1]
[measure]
warmup = "150ms"
window = "300ms"
blocks = {{ min = 50, max = 50 }}
budget = "5m"
profile = "off"
[[change]]
name = "larger"
target = {{ settings = {{ {change} }} }}
"""
SERVERS = {
    "mariadb": ("sysbench", "threads", 'innodb_buffer_pool_size = "64M"'),
    "postgres": ("pgbench", "clients", 'shared_buffers = "64MB"'),
    "nginx": ("http", "concurrency", "worker_processes = 2"),
    "varnish": ("http", "concurrency", 'storage_size = "64M"'),
}


@pytest.fixture
def running(start: Start, tmp_path: Path) -> Callable[..., Any]:
    """A ladder on a server of this kind, in the background."""

    def begin(kind: str, **until: Any) -> Any:
        workload, axis, change = SERVERS[kind]
        file = tmp_path / "study.toml"
        file.write_text(STUDY.format(kind=kind, workload=workload, axis=axis, change=change))
        return start("ladder", str(file), **until)

    return begin


def ends(running: Any) -> str:
    """On the first Ctrl-C, with all that it has started; what it said."""
    _, err = running.end(signal.SIGINT)
    assert running.process.returncode == 130, err
    assert "Traceback" not in err
    assert running.leases() == []
    assert not Path(running.scratch).exists()
    assert running.processes() == []
    return str(err)


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_hangs_amid_a_change_does_not_keep_the_command(running: Callable[..., Any], kind: str) -> None:
    """From the first intent on it is asked to change or to end: here it does neither."""
    command = running(kind, steps=1, file="changes.jsonl")
    servers = [process.pid for process in identity.naming(command.scratch) if process.pid != command.process.pid]
    for pid in servers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    said = ends(command)
    assert f"Ending the load and {kind}" in said
    assert said.index("Ending the load") < said.index("Everything was reverted")


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_ctrl_c_while_its_data_are_made_ends_the_installer(running: Callable[..., Any], kind: str) -> None:
    command = running(kind, steps=0)
    await_that(
        lambda: len(identity.naming(command.scratch)) >= 2,
        "an installer, and the server that it runs",
        of=command.process,
    )
    ends(command)


@pytest.mark.long
@pytest.mark.server
def test_ctrl_c_while_limits_looks_at_a_server_of_its_own_says_what_ends(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(kind="nginx", workload="http", axis="concurrency", change="worker_processes = 2"))
    command = start("limits", "--target", str(file), "--over", "1m", steps=0)
    await_that(lambda: identity.naming(command.scratch), "a server of its own", of=command.process)
    said = ends(command)
    assert said.index("Ending nginx.") < said.index("Stopped.")
