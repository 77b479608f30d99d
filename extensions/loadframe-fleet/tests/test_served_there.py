"""A study that changes a service which runs on another host of a fleet: it is changed by the agent of that host, noted
there, and put back there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station

from waiting import await_that

SERVICE = """
import asyncio, json, sys

class Pool:
    size = 2
    waiting = asyncio.Condition()
    busy = 0

async def speak(reader, writer):
    try:
        while True:
            path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1].decode()
            answer = b"done"
            if path.startswith("/set/"):
                Pool.size = int(path.rpartition("=")[2])
            elif path == "/config":
                answer = json.dumps({"pool": Pool.size}).encode()
            else:
                async with Pool.waiting:
                    await Pool.waiting.wait_for(lambda: Pool.busy < Pool.size)
                    Pool.busy += 1
                await asyncio.sleep(0.02)
                async with Pool.waiting:
                    Pool.busy -= 1
                    Pool.waiting.notify_all()
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(answer), answer))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def serve():
    server = await asyncio.start_server(speak, "0.0.0.0", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()

asyncio.run(serve())
"""
TELL = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
STUDY = """
[study]
name = "served"
question = "What does a larger pool give?"
[target]
kind = "service"
listen = {port}
owned = true
[target.settings]
pool = 2
[target.setting.pool]
values = [2, 4, 8]
apply = "command"
command = [{python}, "-c", {tell}, "http://127.0.0.1:{{port}}/set/pool={{value}}"]
read_back = {{ json = "http://127.0.0.1:{{port}}/config", field = "pool" }}
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [8]
[measure]
warmup = "200ms"
window = "{window}"
blocks = {{ min = 2, max = 2 }}
budget = "60s"
profile = "off"
[[alternative]]
name = "more"
target = {{ settings = {{ pool = 8 }} }}
"""

pytestmark = [
    pytest.mark.server,
    pytest.mark.measures,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]


@pytest.fixture
def lan() -> Iterator[Network]:
    with Network(["coordinator", "north", "one"]) as made:
        yield made


@contextmanager
def served(lan: Network) -> Iterator[int]:
    words = [*lan.within("north"), sys.executable, "-c", SERVICE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def lab(lan: Network, open_folder: Path) -> Iterator[Laboratory]:
    address = lan.address("north")
    north = Station("north", open_folder / "north", ["target"], address, lan.within("north"), may_change=["settings"])
    one = Station("one", open_folder / "one", by=lan.within("one"))
    with served(lan) as port:
        made = Laboratory(open_folder, [one, north], address, port, lan.within("coordinator"))
        yield made
        made.close()


def pool(lab: Laboratory, lan: Network) -> int:
    words = [*lan.within("north"), sys.executable, "-c", TELL, f"http://127.0.0.1:{lab.port}/config"]
    return int(json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["pool"])


def study(lab: Laboratory, window: str, takes_s: float = 0.0, refuses: int = -1) -> str:
    """takes_s: seconds that each change takes; refuses: the value to which it cannot be set."""
    refusal = f"sys.argv[1].endswith('={refuses}') and sys.exit('its owner does not let us')"
    before = f"import sys, time; time.sleep({takes_s}); {refusal}"
    python, tell = json.dumps(sys.executable), json.dumps(f"{before}; {TELL}")
    return STUDY.format(port=lab.port, window=window, python=python, tell=tell)


def mirrored(lab: Laboratory) -> list[dict[str, object]]:
    """Of the last run's folder."""
    (*_, run) = sorted((lab.folder / "runs").iterdir())
    return [json.loads(line) for line in (run / "changes.jsonl").read_text(encoding="utf-8").splitlines()]


def test_it_is_changed_there_and_put_back_there(lab: Laboratory, lan: Network) -> None:
    found = lab.measured("[8]", verb="investigate", study=study(lab, "1s"))
    (more,) = found["alternatives"]
    assert more["verdict"]["ratio"] > 1.5, "four times as much; in company two blocks do not prove it"
    assert pool(lab, lan) == 2
    lines = mirrored(lab)
    assert ("applied", 8) in [(each["status"], each["read_back"]) for each in lines]
    last = lines[-1]
    assert last["status"] == "reverted" and "on host north" in str(last["words"]), last
    lab.await_as_before()


@pytest.mark.parametrize("takes_s", [0.0, 2.5])
def test_it_is_put_back_there_where_the_coordinator_is_killed(lab: Laboratory, lan: Network, takes_s: float) -> None:
    process = lab.begin("[8]", verb="investigate", study=study(lab, "4s", takes_s))
    await_that(lambda: process.poll() is not None or pool(lab, lan) == 8, "the setting is changed")
    assert process.poll() is None, process.communicate()
    journal = [path.read_text(encoding="utf-8") for path in (lab.folder / "north" / "state").glob("*/*.json")]
    assert any("pool" in text for text in journal), "what was there is on that host's disk"
    lab.kill(process)
    assert pool(lab, lan) == 2
    assert mirrored(lab)[-1]["status"] != "reverted", "the copy ends with what the coordinator knew"


@pytest.mark.parametrize("stopped", [True, False])
def test_what_cannot_be_put_back_there_is_said_with_the_host_on_which_it_stands(
    lab: Laboratory, lan: Network, stopped: bool
) -> None:
    process = lab.begin("[8]", verb="investigate", study=study(lab, "4s" if stopped else "1s", refuses=2))
    if stopped:
        await_that(lambda: process.poll() is not None or pool(lab, lan) == 8, "the setting is changed")
        process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1, "1 is what is left changed, also after Ctrl-C\n" + out + said
    message = json.loads(out)["message"]
    assert "Everything was reverted" not in message, message
    assert "`loadframe changes revert` on host north tries again" in message, message
    assert not stopped or "Not reverted: pool on host north." in said, said
    assert pool(lab, lan) == 8
    assert any((lab.folder / "north" / "state" / "changes").glob("*.json")), "its journal is on that host"
    last = mirrored(lab)[-1]
    assert last["status"] == "failed" and "on host north" in str(last["words"]), last


def test_it_is_put_back_there_where_the_worker_of_the_agent_is_killed(lab: Laboratory, lan: Network) -> None:
    process = lab.begin("[8]", verb="investigate", study=study(lab, "4s"))
    await_that(lambda: process.poll() is not None or pool(lab, lan) == 8, "the setting is changed")
    (worker,) = lab.stations[1].processes("loadframe_fleet.worker")
    os.kill(worker, signal.SIGKILL)
    out, said = process.communicate(timeout=120)
    assert process.returncode == 1 and "void" in json.loads(out)["message"], out + said
    await_that(lambda: pool(lab, lan) == 2, "the setting as it was")
    lab.await_as_before()


def test_without_its_owner_s_word_nothing_is_changed(lab: Laboratory, lan: Network) -> None:
    lab.stations[1].may_change = ()
    process = lab.begin("[8]", verb="investigate", study=study(lab, "1s"))
    out, said = process.communicate(timeout=60)
    assert process.returncode == 1, out + said
    error = json.loads(out)
    assert "those on host 'north' may be changed" in error["message"] and 'may_change = ["settings"]' in error["remedy"]
    assert pool(lab, lan) == 2 and not (lab.folder / "runs").exists()
