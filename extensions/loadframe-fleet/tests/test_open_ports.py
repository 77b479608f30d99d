"""No port of dask is open beyond the loopback without TLS: what the fleet file calls a scheduler tells nothing of where
it listens. In a namespace of the test's own, so that no port is open on the machine that runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import network
import psutil
import pytest
from network import Network
from stations import LOADFRAME
from workers import CLOSED, TOKEN, engine, laboratory, place

from loadframe_fleet.check import made_identity
from loadframe_fleet.dask_workers import strangers_reach
from waiting import await_that

DOCS = Path(__file__).parents[3] / "docs/fleet.md"
LISTENS_WIDE = ("--host", "0.0.0.0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")

pytestmark = pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")


@pytest.fixture(scope="module")
def lan() -> Iterator[Network]:
    with Network(["host", "stranger"]) as made:
        yield made


def refused(lan: Network, folder: Path, scheduler: Sequence[str], worker: Sequence[str]) -> dict[str, str]:
    """What tune says of an engine that was started so, which its fleet file names by the loopback."""
    within = lan.within("host")
    with engine(folder, {"one": 0.02, "two": 0.02}, scheduler=scheduler, worker=worker, within=within) as address:
        port = address.rpartition(":")[2]
        here = laboratory(folder / "here", f'scheduler = "tcp://127.0.0.1:{port}"')
        words = [*within, "env", f"LABORATORY_TOKEN={TOKEN}", LOADFRAME, "tune", "study.toml", "--fleet", "fleet.toml"]
        done = subprocess.run([*words, "--json"], cwd=here, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert not list(here.glob("runs/*")), "before anything is measured"
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheduler", "worker", "told"),
    [
        (LISTENS_WIDE, CLOSED, r"the scheduler tcp://127\.0\.0\.1:\d+ listens at tcp://0\.0\.0\.0:\d+, where"),
        (("--host", "127.0.0.1", "--no-dashboard"), CLOSED, r"the scheduler \S+ listens at http://0\.0\.0\.0:8787, "),
        (CLOSED, (*LISTENS_WIDE, "--no-nanny"), r"the worker one-worker listens at tcp://0\.0\.0\.0:\d+, where"),
        (CLOSED, ("--no-dashboard",), r"listens at tcp://0\.0\.0\.0:\d+ and tcp://\[::\]:\d+ and http://0\.0"),
        (CLOSED, ("--host", "127.0.0.1", "--dashboard-address", ":0"), r"listens at http://0\.0\.0\.0:\d+, where"),
    ],
)
def test_what_strangers_reach_is_refused(
    lan: Network, open_folder: Path, scheduler: Sequence[str], worker: Sequence[str], told: str
) -> None:
    error = refused(lan, open_folder, scheduler, worker)
    assert error["kind"] == "FleetError" and re.search(told, error["message"]), error
    assert "--dashboard-address 127.0.0.1:0" in error["remedy"] and "--tls-ca-file" in error["remedy"]


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        ("tls://0.0.0.0:8786", False),
        ("inproc://10.0.0.1/1/1", False),
        ("tcp://127.0.0.9:1", False),
        ("tcp://[::1]:1", False),
        ("http://127.0.0.1:1", False),
        ("tcp://10.0.0.1:1", True),
        ("tcp://[::]:1", True),
        ("tcp://127.example:1", True),
        ("ws://0.0.0.0:1", True),
        ("http://0.0.0.0:1", True),
    ],
)
def test_who_reaches_an_address(address: str, reached: bool) -> None:
    assert strangers_reach([address]) == ((address,) if reached else ())


KNOCK = """
import socket, ssl, sys
for port in map(int, sys.argv[2:]):
    for tls in (False, True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((sys.argv[1], port), timeout=5) as stranger:
            try:
                with context.wrap_socket(stranger) if tls else stranger as spoken:
                    spoken.sendall(b"GET /health HTTP/1.0\\r\\n\\r\\n")
                    print(port, spoken.recv(100))
            except OSError:
                print(port, b"")
"""


@pytest.mark.long
def test_with_the_commands_of_the_docs_a_stranger_gets_nothing(lan: Network, open_folder: Path) -> None:
    """They are run as they stand there, on the host's own address."""
    place(open_folder, 0.02)
    identity = made_identity()
    for name, text in (
        ("ca.pem", identity.certificate),
        ("host.pem", identity.certificate),
        ("host.key", identity.key),
    ):
        (open_folder / name).write_text(text)
    blocks = re.findall(r"```sh\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    (text,) = [each for each in blocks if "dask worker" in each]
    own, dask = lan.address("host"), Path(LOADFRAME).with_name("dask")
    text = text.replace("ADDRESS", own).replace("SCHEDULER:", f"{own}:").replace("dask ", f"{dask} ")
    exports, scheduler, worker = re.split(r"\n(?=/)", text)
    begun = []
    try:
        for words in (scheduler, worker, worker.replace("--name one", "--name two")):
            script = f"{exports}\nexport LABORATORY_TOKEN={TOKEN}\nexec {words}"
            begun.append(
                subprocess.Popen(
                    [*lan.within("host"), "sh", "-c", script], cwd=open_folder,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
        await_that(lambda: len(listening(lan)) == 8, "scheduler, two nannies and two workers, and pages of three")
        ends = listening(lan)
        reached = {port for host, port in ends if host != "127.0.0.1"}
        assert len(reached) == 5, ends
        knocking = [*lan.within("stranger"), sys.executable, "-c", KNOCK, own, *map(str, reached)]
        answers = subprocess.run(knocking, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        assert len(answers) == 2 * len(reached) and all(each.endswith(" b''") for each in answers), answers
        assert "['one', 'two']" in present(lan, open_folder, own), "who has a certificate is let in"
    finally:
        for process in begun:
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
            process.wait()


def listening(lan: Network) -> set[tuple[str, int]]:
    """Every address and port of the host that is open."""
    told = subprocess.run([*lan.within("host"), "ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    ends = [line.split()[3].rpartition(":") for line in told.splitlines()]
    return {(host, int(port)) for host, _, port in ends}


ENTER = """
from pathlib import Path
from loadframe_fleet.declaration import load
from loadframe_fleet.engine import DaskEngine

if __name__ == "__main__":
    with DaskEngine(load(Path("fleet.toml"))) as engine:
        print(sorted(engine.present()))
"""
ROW = '[[host]]\nname = "{0}"\nroles = ["trial"]\nworker = "{0}"\nauthorised = true\nowner = "this test"\n'


def present(lan: Network, folder: Path, own: str) -> str:
    """What an engine says that shows a certificate of the same authority."""
    tls = 'tls = { ca = "ca.pem", certificate = "host.pem", key = "host.key" }'
    about = f'[fleet]\nname = "laboratory"\nscheduler = "tls://{own}:8786"\n{tls}\n'
    folder.joinpath("fleet.toml").write_text(about + ROW.format("one") + ROW.format("two"))
    words = [*lan.within("host"), sys.executable, "-c", ENTER]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
