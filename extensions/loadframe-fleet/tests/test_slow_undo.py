"""A setting that takes its owner long to put back: its host goes on to the end, and the coordinator says so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.study import load
from loadframe_fleet.connection import Agent
from loadframe_fleet.declaration import HostTable
from waiting import await_that

TAKES_S = 28.0
"""An owner's command may take 30 s."""
SERVICE = """
import http.server, json, pathlib

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = json.dumps({"pool": int(pathlib.Path("pool").read_text())}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
SET = """
import pathlib, sys, time
folder, value = pathlib.Path(sys.argv[1]), sys.argv[2]
with (folder / "calls").open("a") as calls:
    calls.write(value + chr(10))
if value == "2":
    time.sleep(TAKES_S)
(folder / "pool").write_text(value)
"""
STUDY = """
[study]
name = "slow"
question = "Is it put back?"
[target]
kind = "service"
listen = {port}
owned = true
[target.settings]
pool = 2
[target.setting.pool]
values = [2, 8]
apply = "command"
command = [{python}, {program}, {folder}, "{{value}}"]
read_back = {{ json = "http://127.0.0.1:{{port}}/config", field = "pool" }}
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
[measure]
window = "1s"
budget = "60s"
profile = "off"
"""


@pytest.fixture
def served(open_folder: Path) -> Iterator[Path]:
    """A folder with the study of a service that runs."""
    (open_folder / "pool").write_text("2", encoding="utf-8")
    (open_folder / "pool").chmod(0o666)
    program = open_folder / "set.py"
    program.write_text(SET.replace("TAKES_S", str(TAKES_S)), encoding="utf-8")
    words = [sys.executable, "-c", SERVICE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=open_folder) as process:
        assert process.stdout is not None
        try:
            python, folder = json.dumps(sys.executable), json.dumps(str(open_folder))
            port = int(process.stdout.readline())
            text = STUDY.format(port=port, python=python, program=json.dumps(str(program)), folder=folder)
            (open_folder / "study.toml").write_text(text, encoding="utf-8")
            yield open_folder
        finally:
            process.kill()


@pytest.mark.long
def test_it_is_put_back_to_the_end_once_and_that_it_is_under_way_is_said(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATE", "SCRATCH"):
        (served / name).mkdir(mode=0o755)
        monkeypatch.setenv(f"LOADFRAME_{name}", str(served / name))
    said: list[str] = []
    agent = Agent(HostTable(name="north", roles=["target"], here=True))
    agent.say = said.append
    try:
        study = load(served / "study.toml").resolved()
        agent.ask("set_up", 60, study=study, name="north", drives=False, folder=str(served))
        assert (
            agent.ask("change", 60, place="server", address="127.0.0.1", do="set", name="pool", value=8)["read_back"]
            == 8
        )
    finally:
        begun = time.monotonic()
        agent.close()
    assert time.monotonic() - begun < TAKES_S - 2, "the coordinator does not wait for it"
    (words,) = said
    assert words.startswith("Host north: pool of ") and "being put back" in words and "up to 180 s" in words
    assert (served / "pool").read_text(encoding="utf-8") == "8", "not yet"
    await_that(lambda: not [*(served / "STATE").glob("*/*.json")], "its journal and its lease are gone", 90)
    assert (served / "pool").read_text(encoding="utf-8") == "2"
    assert (served / "calls").read_text(encoding="utf-8").split() == ["8", "2"], "once"
    agent.close()
