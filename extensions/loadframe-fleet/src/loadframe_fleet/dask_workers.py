"""Questions to a scheduler of dask and its workers, and the work of a worker: texts in, texts out. Questions about
themselves are sent by value, as a function within a function: a scheduler may have no Loadframe. A node is asked where
it listens, as it is known by one address alone. A trial is a process of its own (trial.py), which ends with its worker,
its task, or a coordinator that is gone or silent: dask notices a cut link only after minutes, so the coordinator sends
a beat once a second."""

import contextlib
import ipaddress
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dask
from distributed import get_worker

from loadframe.formats.json_text import parse_json, write_json
from loadframe.host.environment import own_environment, python
from loadframe.host.processes import MARK
from loadframe_fleet.agent import cleaned_up, how_ended
from loadframe_fleet.looking import facts
from loadframe_fleet.wire import BEAT_S, Closed, Lines, Silent, WireError, written

ENCRYPTED = ("tls://", "inproc://")
"""Listeners of dask closed to strangers: both ends show a certificate (distributed.security), or there is no port."""
ASKED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker at the scheduler. number: unique, also among later workers at that address."""

    address: str
    number: str
    threads: int
    nanny: str


def settings_of(client: Any) -> tuple[int, bool]:
    """How often a task lost with its worker is begun again, and whether tasks move."""

    def asked(dask_scheduler: Any) -> tuple[int, bool]:
        return int(dask_scheduler.allowed_failures), "stealing" in dask_scheduler.extensions

    failures, steals = client.run_on_scheduler(asked, callback_timeout=ASKED_WITHIN_S)
    return int(failures), bool(steals)


def workers_of(client: Any) -> Mapping[str, Seen]:
    """By the names under which they were started."""

    def asked(dask_scheduler: Any) -> dict[str, tuple[str, str, int, str]]:
        return {
            str(at.name): (str(at.address), str(at.server_id), int(at.nthreads), str(at.nanny or ""))
            for at in dask_scheduler.workers.values()
        }

    workers = client.run_on_scheduler(asked, callback_timeout=ASKED_WITHIN_S)
    return {str(name): Seen(*worker) for name, worker in workers.items()}


def open_of_scheduler(client: Any) -> tuple[str, ...]:
    return strangers_reach(client.run_on_scheduler(_listening(), callback_timeout=ASKED_WITHIN_S))


def open_of_worker(client: Any, worker: Seen) -> tuple[str, ...]:
    """The same of a worker, or the nanny that has started it. Raises what dask raises where one has gone."""
    addresses: list[str] = []
    for address, nanny in ((worker.address, False), (worker.nanny, True)):
        if address:
            answers = client.run(_listening(), workers=[worker.address], nanny=nanny, callback_timeout=ASKED_WITHIN_S)
            if not answers:
                raise ConnectionError(f"nothing answers at {address}")
            addresses += [place for places in answers.values() for place in places]
    return strangers_reach(addresses)


def _listening() -> Callable[..., list[str]]:
    def asked(dask_scheduler: Any = None, dask_worker: Any = None) -> list[str]:
        node = dask_worker if dask_scheduler is None else dask_scheduler
        servers, addresses = [], []
        for listener in node.listeners:
            if hasattr(listener, "tcp_server"):
                servers.append((listener.prefix, listener.tcp_server))
            else:
                addresses.append(str(listener.listen_address))
        if getattr(node, "http_server", None) is not None:
            servers.append(("http://", node.http_server))
        for scheme, server in servers:
            for end in server._sockets.values():  # of tornado, which has no other way to list them
                host, port = end.getsockname()[:2]
                addresses.append(f"{scheme}[{host}]:{port}" if ":" in host else f"{scheme}{host}:{port}")
        return addresses

    return asked


def strangers_reach(listening: Iterable[str]) -> tuple[str, ...]:
    """Addresses neither on the loopback nor for holders of a certificate. Pages are open to all, even if encrypted."""
    return tuple(address for address in listening if not address.startswith(ENCRYPTED) and not _is_loopback(address))


def _is_loopback(address: str) -> bool:
    host = address.partition("://")[2].rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: it may lead anywhere
        return False


OWN_LEASE_S = 30.0
"""Lease of workers on the command's own machine, which end with it at once: only a stopped command (SIGSTOP) remains,
which on a busy machine is no reason to lose trials."""
_heard: dict[str, float] = {}
"""On a worker: when it last heard of each task (CLOCK_MONOTONIC, s)."""


def hear(task: str) -> None:
    if task in _heard:
        _heard[task] = time.monotonic()


class Lease:
    """The coordinator's lease on a worker, from the beginning of a task until `end`."""

    def __init__(self, client: Any, address: str, task: str) -> None:
        self._client = client
        self._address = address
        self._task = task
        self._over = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def end(self) -> None:
        self._over.set()

    def _beat(self) -> None:
        beat_s = 0.0
        while not self._over.wait(beat_s):
            beat_s = BEAT_S
            with contextlib.suppress(Exception):  # the worker or the scheduler has gone, and with it the task
                self._client.run(hear, self._task, workers=[self._address], on_error="ignore")


POLL_S = 0.1
NANNYS_SEED = "6640"
"""distributed/nanny.py"""
ENDS_WITHIN_S = 25.0
"""A trial puts everything back before it ends."""


def look(asked: str) -> str:
    """missing: variables that the study names (secrets) and its worker lacks."""
    given = parse_json(asked.encode())
    missing = [name for name in given["secrets"] if name not in os.environ]
    return write_json({"facts": facts(), "missing": missing, "process": os.getpid()})


def carry_out(asked: str) -> str:
    """A trial: its answer (trial.py), with boot and process of this host; or died: why there is none."""
    given = parse_json(asked.encode())
    process = subprocess.Popen(
        python("loadframe_fleet.trial"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(),
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    lines, answer, why = Lines(process.stdout.fileno()), b"", ""
    task, lease_s, within_s = given["task"], float(given["lease_s"]), float(given["within_s"])
    _heard[task] = time.monotonic()
    with process.stdout:
        try:
            with contextlib.suppress(BrokenPipeError):  # it has died, which its end reports
                process.stdin.write(written(given))
                process.stdin.flush()
            until = time.monotonic() + within_s
            while not answer and not why:
                if not _wanted(task):
                    why = "it was cancelled"
                elif time.monotonic() - _heard[task] > lease_s:
                    why = f"its coordinator has said nothing for {lease_s:g} s"
                elif time.monotonic() > until:
                    why = f"it had not ended within {within_s:g} s"
                _beat(process)
                try:
                    answer = lines.line(POLL_S)
                except Silent:
                    continue
                except (Closed, WireError):  # its end says why
                    break
            del _heard[task]
            if not why:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(ENDS_WITHIN_S)
        finally:
            end_process(process)
    left = cleaned_up(_environment()) if process.returncode else ""  # where it could not do so by itself
    me = {"boot": facts()["boot"], "process": os.getpid(), "task": task}
    if why or not answer:
        why = why or f"its process has ended by {how_ended(process.returncode)}"
        return write_json({**me, "died": f"{why}{left and '. '}{left}"})
    return write_json({**parse_json(answer), **me})


def _environment() -> dict[str, str]:
    """Ours, without what dask sets for its workers (threads of libraries, the allocator, hashes), which servers would
    inherit, and without their lease."""
    given: dict[str, Any] = dask.config.get("distributed.nanny.pre-spawn-environ", {}) or {}
    given = {"PYTHONHASHSEED": NANNYS_SEED, **given, MARK: os.environ.get(MARK)}
    return {name: value for name, value in own_environment().items() if str(given.get(name)) != value}


def _wanted(task: str) -> bool:
    state = get_worker().state.tasks.get(task)
    return state is not None and state.state not in ("cancelled", "released", "forgotten")


def _beat(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended, which its end reports
        process.stdin.write(written({"beat": True}))
        process.stdin.flush()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """By closing its stdin; if it has not ended within ENDS_WITHIN_S, by SIGKILL."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # an unread beat, with which nothing is lost
        process.stdin.close()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
