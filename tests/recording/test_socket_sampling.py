"""Looks at the sockets of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.recording.readers import RecordingReader
from loadframe.recording.socket_rows import parse_rows
from loadframe.recording.socket_sampling import SocketSampler

LISTENS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
input()
"""
SELDOM_S = 10.0


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
            writer.begin_sample(at_s, 1e9 + at_s)
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
