"""Workers of dask on this machine that stand in for hosts, a service that each of them starts, and a study of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from stations import LOADFRAME

from loadframe.host.environment import python
from waiting import await_that

SERVICE = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

pool, pace_s = int(os.environ.get("POOL", "4")), float(Path("pace").read_text())
workers = threading.Semaphore(pool)


class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def do_GET(self):
        if self.path == "/config":
            answer = json.dumps({"pool": pool}).encode()
        else:
            with workers:
                time.sleep(pace_s)
            answer = b"done"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
STUDY = """
[study]
name = "pooled"
question = "How many at a time?"
[target]
kind = "service"
command = ["python3", "service.py", "{{port}}"]
ready = {{ http = "http://127.0.0.1:{{port}}/config", within = "60s" }}
[target.settings]
pool = 2
[target.setting.pool]
values = [1, 2, 8]
apply = "environment"
name = "POOL"
[workload]
kind = "http"
[[workload.request]]
path = "/"
headers = {{ X-Token = "{{ENV:LABORATORY_TOKEN}}" }}
[load]
axis = "concurrency"
levels = [8]
[measure]
warmup = "200ms"
window = "{window}"
blocks = {{ min = 3, max = 3 }}
budget = "{budget}"
profile = "off"
"""
HOST = """
[[host]]
name = "{name}"
roles = ["trial"]
worker = "{name}-worker"
authorised = true
owner = "this test"
"""
TOKEN = "not-for-the-scheduler"
AGREED = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
}


def laboratory(folder: Path, about: str = "", window: str = "1s", budget: str = "240s", more: str = "") -> Path:
    """A folder of this command, with the study, the service and a fleet of two hosts. more: at the end of the study."""
    place(folder, 0.02)
    folder.joinpath("study.toml").write_text(STUDY.format(window=window, budget=budget) + more)
    rows = "".join(HOST.format(name=name) for name in ("one", "two"))
    folder.joinpath("fleet.toml").write_text(f'[fleet]\nname = "laboratory"\n{about}\n{rows}')
    return folder


def place(folder: Path, pace_s: float) -> Path:
    """A folder in which the service serves at that pace."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    folder.joinpath("service.py").write_text(SERVICE)
    folder.joinpath("pace").write_text(str(pace_s))
    return folder


def begun(folder: Path, verb: str, *more: str) -> subprocess.Popen[str]:
    words = [LOADFRAME, verb, "study.toml", "--fleet", "fleet.toml", "--json", *more]
    environment = {**os.environ, "LABORATORY_TOKEN": TOKEN}
    return subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def attempts(folder: Path) -> list[dict[str, Any]]:
    """Those of which the whole line is written."""
    return [
        json.loads(line)
        for path in folder.glob("runs/*/fleet-trials.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]


def trial_processes(folder: Path) -> list[int]:
    """Of trials that run in that folder, or below it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            if b"loadframe_fleet.trial" in words and (each / "cwd").readlink().is_relative_to(folder):
                found.append(int(each.name))
        except OSError:
            continue
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


CLOSED = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""On loopback alone, with the pages."""


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the worker of a nanny, which would start another one for the one that has ended."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGSTOP)
    for each in [*psutil.Process(process.pid).children(recursive=True), process]:
        each.kill()
    process.wait()


@contextmanager
def engine(
    folder: Path,
    paces: dict[str, float],
    *,
    agreed: bool = True,
    token: str = TOKEN,
    scheduler: Sequence[str] = CLOSED,
    worker: Sequence[str] = (*CLOSED, "--no-nanny"),
    within: Sequence[str] = (),
) -> Iterator[str]:
    """A scheduler on loopback, and a worker for each host, in a folder of its own: the address. scheduler, worker: the
    words by which they are told where to listen; within: what comes before their commands."""
    environment = {**os.environ, **(AGREED if agreed else {}), **({"LABORATORY_TOKEN": token} if token else {})}
    with ExitStack() as stack:

        def run(module: str, words: Sequence[str], place: Path) -> None:
            process = subprocess.Popen(
                [*within, *python(f"distributed.cli.{module}", *words)], cwd=place, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            stack.callback(_end, process)

        file = folder / "scheduler.json"
        run("dask_scheduler", [*scheduler, "--port", "0", "--scheduler-file", str(file)], folder)
        await_that(lambda: file.exists() and file.read_text(encoding="utf-8").endswith("}"), "a scheduler")
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        for name, pace_s in paces.items():
            words = [address, "--name", f"{name}-worker", "--nthreads", "1", *worker]
            run("dask_worker", words, place(folder / name, pace_s))
        yield address
