"""How many modules of ours a reader walks through between a command and the socket of its server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND, SOCKET = "loadframe.cli.studies", "loadframe.connections.unix_socket"
MOST = 8
WALK = """
import json, sys
deepest = []
def look(event, arguments):
    global deepest
    if event == "socket.connect":
        frame, names = sys._getframe(1), {}
        while frame is not None:
            names.setdefault(frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        deepest = max(deepest, [name for name in names if name.startswith("loadframe")], key=len)
sys.addaudithook(look)
from loadframe.cli import main
code = main.run(sys.argv[1:])
print(json.dumps([code, deepest]))
"""
STUDY = """
[study]
name = "hops"
question = "How far is it?"
[target]
kind = "mariadb"
[workload]
kind = "oltp"
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""


@pytest.mark.long
@pytest.mark.server
def test_a_command_is_few_modules_from_the_socket_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "hops.toml").write_text(STUDY)
    command = [sys.executable, "-c", WALK, "measure", "hops.toml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    code, deepest = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    between = deepest[deepest.index(SOCKET) + 1 : deepest.index(COMMAND)]
    assert between
    assert len(between) <= MOST, between
