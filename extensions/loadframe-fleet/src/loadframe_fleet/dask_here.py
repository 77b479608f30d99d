"""The scheduler and the workers of dask that a command starts on its own machine: `python -P -m
loadframe_fleet.dask_here FOLDER NAME WORKER...`, until stdin is closed. dask puts its scratch folder first in the
search path for modules, and changes the environment: so this process does nothing else, works in `/`, and keeps all
files in a private folder of the command's lease. Its semaphores have NAME, the lease's shared_name."""

import logging
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import distributed

from loadframe.system.files import Folder, Whose
from loadframe_fleet.wire import own_output

_dask: Any = distributed
OURS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.admin.tick.limit": "1h",
}
"""No pages are served: anyone on this machine could read them. The last three would disturb measurements."""
CERTIFICATE, KEY = "node.pem", "node.key"


def make_key(folder: Path) -> None:
    """folder: private. The certificate is self-signed and valid for a year."""
    made, ours = _dask.Security.temporary(), Folder(folder, Whose.OURS)
    for name, text in ((CERTIFICATE, made.tls_ca_file), (KEY, made.tls_client_key)):
        ours.replace(name, text.encode(), mode=0o600)


def serve(folder: Path, names: Sequence[str]) -> None:
    """As LocalCluster, with names: on loopback, by TLS, without a dashboard. What a library prints goes to stderr: on
    stdout the command reads only the address."""
    sink = own_output()
    certificate, key = str(folder / CERTIFICATE), str(folder / KEY)
    nodes = {f"tls_{node}_{what}": path for node in ("client", "scheduler", "worker")
             for what, path in (("cert", certificate), ("key", key))}  # fmt: skip
    security = _dask.Security(tls_ca_file=certificate, require_encryption=True, **nodes)
    way = {"security": security, "protocol": "tls://", "host": "127.0.0.1"}
    nanny = {"nthreads": 1, "memory_limit": None, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    workers = {name: {"cls": _dask.Nanny, "options": {**way, **nanny, "name": name}} for name in names}
    port = {"port": 0, "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": _dask.Scheduler, "options": {**way, **port}}
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the command itself reports which workers go
    tempfile.tempdir = str(folder)
    with (
        dask.config.set({**OURS, "temporary-directory": str(folder)}),
        _dask.SpecCluster(workers=workers, scheduler=scheduler, security=security) as cluster,
    ):
        os.write(sink, f"{cluster.scheduler_address}\n".encode())
        sys.stdin.read()


if __name__ == "__main__":
    # Python removes semaphores when a process ends, but not where all of them are killed; the lease's sweep does.
    _process: Any = multiprocessing.current_process()
    _process._config["semprefix"] = f"/{sys.argv[2]}"
    serve(Path(sys.argv[1]), sys.argv[3:])
