"""A trial on a dask worker that is in this very process, for tests of what becomes of it: trial_on_worker.py HOW
FOLDER. To be run in a network of its own. Prints as JSON what the worker answers, and the host's setting around it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from distributed import Client
from workers import STUDY, place

from loadframe.study import load
from loadframe_fleet.dask_workers import Lease, carry_out
from loadframe_fleet.wire import LOAD_LEASE_S
from waiting import await_that

FILE = Path("/proc/sys/net/core/somaxconn")
CHANGED = '[host.settings]\n"net.core.somaxconn" = 5000\n[remedies]\nallow = ["target", "host"]\n'
WITHIN_S = 120.0


def trial() -> int:
    """The process of the trial, once there is one; 0 before."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"loadframe_fleet.trial" in words and parent == os.getpid():
            return int(folder.name)
    return 0


def value() -> int:
    return int(FILE.read_text(encoding="utf-8"))


def main() -> None:
    how, folder = sys.argv[1], place(Path(sys.argv[2]), 0.02)
    os.environ["LABORATORY_TOKEN"] = "token"
    path = folder / "study.toml"
    path.write_text(STUDY.format(window="60s", budget="240s") + CHANGED, encoding="utf-8")
    study = load(path)
    asked = {
        "study": study.resolved(), "states": [], "order": [["A", 8.0]], "block": 1, "round": None,
        "step": "trial", "floors": [], "host": "one", "folder": str(folder), "cpus": "", "within_s": 200.0,
        "task": "task-1", "lease_s": LOAD_LEASE_S,
    }  # fmt: skip
    before = value()
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        future = client.submit(carry_out, json.dumps(asked), key="task-1", pure=False)
        lease = Lease(client, next(iter(client.scheduler_info()["workers"])), "task-1")
        await_that(lambda: future.done() or value() != before, "the setting is changed", WITHIN_S)
        assert not future.done(), future
        changed = value()
        begun, process = time.monotonic(), trial()
        if how == "killed":
            os.kill(process, signal.SIGKILL)
        else:  # no one speaks any more
            lease.end()
        await_that(lambda: value() == before and not Path(f"/proc/{process}").exists(), "all is as before", WITHIN_S)
        back_s = time.monotonic() - begun
        answer = json.loads(future.result(timeout=WITHIN_S))
        lease.end()
        print(json.dumps({"answer": answer, "before": before, "changed": changed, "back_s": back_s}))


if __name__ == "__main__":
    main()
