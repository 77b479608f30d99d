"""Looks at the sockets of real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.recording.readers import RecordingReader
from loadframe.recording.socket_rows import LISTEN, parse_rows
from loadframe.recording.socket_sampling import Row, SocketSampler

LISTENS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
input()
"""
SELDOM_S, TICK_S = 10.0, 0.1


@dataclass
class One:
    """A followed process."""

    directory: int
    component: str
    pid: int


def test_what_a_process_had_open_before_it_was_followed_is_seen_at_the_first_look(tmp_path: Path) -> None:
    """A service listens before it is known to be ready, while the sockets of others are looked at."""
    path = tmp_path / "a.lfrec"
    command = [sys.executable, "-c", LISTENS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        pids = {"helper": os.getpid(), "target": child.pid}
        followed = [One(os.open(f"/proc/{pid}", os.O_RDONLY), name, pid) for name, pid in pids.items()]
        writer = FrameWriter(path, Facts(0.1, 100, 2, 4096, 0.0, 0.0, 1e9))
        sampler = SocketSampler(Path("/"), writer)
        for place, processes in enumerate((followed[:1], followed)):
            at_s = SELDOM_S * place
            writer.begin(at_s, 1e9 + at_s)
            sampler.sample(at_s, processes)
            writer.end_record()
        writer.close()
        sampler.close()
        for each in followed:
            os.close(each.directory)
        child.kill()
    with RecordingReader(path) as reader:
        *_, last = reader.all_ticks()
    assert any(one.listens for one in parse_rows(last.entries[f"target:{pids['target']}:sockets"]))


class SlowKernel(SocketSampler):
    """One that takes so much CPU time for a list of all connections, and little for one of those that listen."""

    def __init__(self, writer: FrameWriter, connections_s: float, listeners_s: float) -> None:
        self.spent_s = 0.0
        self.takes_s = {True: listeners_s, False: connections_s}
        super().__init__(Path("/"), writer, interval_s=TICK_S, cpu_s=lambda: self.spent_s)

    def _listed(self, asking: socket.socket, states: int) -> Iterator[tuple[int, Row | None]]:
        self.spent_s += self.takes_s[states == 1 << LISTEN]
        return super()._listed(asking, states)


@pytest.mark.parametrize(
    ("connections_s", "listeners_s", "in_window", "seldom"),
    [(0.0004, 0.00006, 2, False), (0.0028, 0.00006, 1, False), (0.006, 0.00015, 0, False), (0.06, 0.006, 0, True)],
)
def test_listeners_are_looked_at_with_each_tick_however_long_connections_take(
    tmp_path: Path, connections_s: float, listeners_s: float, in_window: int, seldom: bool
) -> None:
    """A window of 0.3 s has a look at connections where that costs a hundredth of it, and one at listeners anyway: at
    each tick but where even that costs too much."""
    path = tmp_path / "a.lfrec"
    with socket.create_server(("127.0.0.1", 0)):
        followed = One(os.open("/proc/self", os.O_RDONLY), "target", os.getpid())
        writer = FrameWriter(path, Facts(TICK_S, 100, 2, 4096, 0.0, 0.0, 1e9))
        sampler = SlowKernel(writer, connections_s, listeners_s)
        for tick in range(100):
            if tick == 60:
                sampler.schedule.begin_step(tick * TICK_S, 0.15, 0.3)
            writer.begin(tick * TICK_S, 1e9 + tick * TICK_S)
            sampler.sample(tick * TICK_S, [followed])
            writer.end_record()
        writer.close()
        sampler.close()
        os.close(followed.directory)
    with RecordingReader(path) as reader:
        ticks = reader.all_ticks()
    at_all, at_listeners = (
        [place for place, tick in enumerate(ticks) if f"target:{followed.pid}:{name}" in tick.entries]
        for name in ("sockets", "listeners")
    )
    assert sum(62 <= place <= 64 for place in at_all) == in_window
    assert (len({*at_all, *at_listeners}) < 20) if seldom else (sorted([*at_all, *at_listeners]) == list(range(100)))
    rows = [
        row for place in at_listeners for row in parse_rows(ticks[place].entries[f"target:{followed.pid}:listeners"])
    ]
    assert rows and all(row.listens for row in rows)
