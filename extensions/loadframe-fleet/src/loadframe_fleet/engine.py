"""dask.distributed as the engine of trials: an existing scheduler, or one of our own on this machine. No result is from
a cache (pure=False), no task is retried (retries, allowed-failures) or moved (stealing, allow_other_workers)."""

import contextlib
import logging
import queue
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import distributed

from loadframe.errors import FleetError
from loadframe.formats.json_text import parse_json, write_json
from loadframe.host.environment import NO_FOLDER, python
from loadframe.host.leases import Lease as LeaseOnDisk
from loadframe.host.privilege import US, make_private
from loadframe.host.processes import Allowance, spawn
from loadframe_fleet import dask_here
from loadframe_fleet.dask_workers import (
    OWN_LEASE_S,
    Lease,
    Seen,
    carry_out,
    end_process,
    look,
    open_of_scheduler,
    open_of_worker,
    settings_of,
    workers_of,
)
from loadframe_fleet.declaration import Fleet, HostTable, TlsTable
from loadframe_fleet.hosts import check_alike
from loadframe_fleet.on_hosts import Came
from loadframe_fleet.wire import LOAD_LEASE_S, Closed, LastWords, Lines, Message, Say, Silent, WireError

_dask: Any = distributed
STARTED_WITHIN_S = 60.0
CONNECTED_WITHIN_S = 20.0
LOOKED_WITHIN_S = 30.0
POLL_S = 0.2
STARTED_SO = (
    "Start it with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 and "
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING=False."
)
CLOSED_SO = (
    "Start it with --host 127.0.0.1 and --dashboard-address 127.0.0.1:0; or with --tls-ca-file, --tls-cert and "
    "--tls-key, and --dashboard-address 127.0.0.1:0: --no-dashboard alone leaves a port open (docs/fleet.md)."
)


@dataclass(frozen=True, slots=True)
class Place:
    """boot, process: the kernel on which it is, as reported, and its process id there."""

    worker: Seen
    boot: str
    process: int


@dataclass(frozen=True, slots=True)
class _Open:
    host: str
    worker: Seen
    future: Any
    lease: Lease


class DaskEngine:
    """See on_hosts.Engine. Enter it before anything is measured; all hosts are there then."""

    def __init__(self, fleet: Fleet, secrets: Sequence[str] = (), say: Say = lambda _: None) -> None:
        """secrets: variables that each host must have. FleetError for fewer than two hosts for trials."""
        self._about = fleet.fleet
        self._hosts = fleet.with_role("trial")
        self._secrets = sorted(secrets)
        self._say = say
        self._stack = ExitStack()
        self._client: Any = None
        self._open: dict[str, _Open] = {}
        self._ended: queue.Queue[str] = queue.Queue()
        self._places: dict[str, Place] = {}
        self._foreign: dict[str, str] = {}
        if len(self._hosts) < 2:
            raise FleetError(
                f"the fleet {fleet.fleet.name!r} has {len(self._hosts)} hosts for trials side by side; it takes two",
                remedy='Give hosts roles = ["trial"] and worker = "NAME" (docs/fleet.md).',
            )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._say(f"Reaching {len(self._hosts)} hosts for trials")
            self._client = stack.enter_context(self._connected(stack))
            self._check_scheduler()
            self._await_hosts()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self._hosts)

    @property
    def kernels(self) -> Mapping[str, str]:
        """Boot ids by host, as reported."""
        return {name: place.boot for name, place in self._places.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        names, kernels = ", ".join(self.hosts), self.kernels
        together = ("Some of them run on one kernel.",) if len(set(kernels.values())) < len(kernels) else ()
        return (f"The hosts {names} of the fleet {self._about.name} took the trials.", *together)

    def present(self) -> frozenset[str]:
        """See Engine. A returned worker is checked again, also at its old address."""
        seen = self._workers()
        for host in self._hosts:
            worker, known = seen.get(host.name), self._places.get(host.name)
            if worker is None or worker.number in (self._foreign.get(host.name), known and known.worker.number):
                continue
            place = self._looked(host, worker) if known is None else self._returned(host, worker, known)
            if place is not None:
                self._places[host.name] = place
        at = {name for name, place in self._places.items() if name in seen and seen[name].number == place.worker.number}
        return frozenset(at - {opened.host for opened in self._open.values()})

    def begin(self, host: str, task: str, asked: Mapping[str, Any]) -> None:
        worker = self._places[host].worker
        cpus = next(table.cpus for table in self._hosts if table.name == host)
        folder = "" if self._about.scheduler else str(Path.cwd())  # not valid on other machines
        lease_s = LOAD_LEASE_S if self._about.scheduler else OWN_LEASE_S
        more = {"task": task, "host": host, "cpus": cpus or "", "folder": folder, "lease_s": lease_s}
        text = write_json({**asked, **more})
        future = self._submit(carry_out, text, task, worker.address)
        self._open[task] = _Open(host, worker, future, Lease(self._client, worker.address, task))
        future.add_done_callback(lambda _: self._ended.put(task))

    def came(self, within_s: float) -> Came | None:
        until = time.monotonic() + within_s
        while True:
            try:
                task = self._ended.get(timeout=max(0.0, min(POLL_S, until - time.monotonic())))
            except queue.Empty:
                if (gone := self._gone()) is not None:
                    return gone
                if time.monotonic() >= until:
                    return None
                continue
            if task in self._open:
                return self._answered(task)

    def close(self) -> None:
        for task in list(self._open):
            self._drop(task)
        with _quiet():
            self._stack.close()

    def _connected(self, stack: ExitStack) -> Any:
        if self._about.scheduler:
            return _client(self._about.scheduler, self._about.tls)
        stack.enter_context(_quiet())
        return _client(*stack.enter_context(_started(self._about.name, [host.worker for host in self._hosts])))

    def _check_scheduler(self) -> None:
        if reached := open_of_scheduler(self._client):
            raise FleetError(
                f"the scheduler {self._about.scheduler} listens at {' and '.join(reached)}, where whoever reaches it "
                "may run programs, or reads what it does",
                remedy=CLOSED_SO,
            )
        failures, steals = settings_of(self._client)
        faults = [f"allowed-failures is {failures}"] if failures else []
        faults += ["work stealing is on"] if steals else []
        if faults:
            raise FleetError(f"the scheduler {self._about.scheduler}: {' and '.join(faults)}", remedy=STARTED_SO)

    def _workers(self) -> Mapping[str, Seen]:
        try:
            if self._client.status == "running":
                workers = workers_of(self._client)
                return {host.name: workers[host.worker] for host in self._hosts if host.worker in workers}
            why = f"the connection is {self._client.status}"
        except (OSError, TimeoutError, RuntimeError) as error:
            why = str(error)
        raise FleetError(
            f"the dask scheduler of the fleet is gone: {why}",
            remedy="Start it, and go on from the trials with --resume.",
        )

    def _await_hosts(self) -> None:
        until = time.monotonic() + CONNECTED_WITHIN_S
        while missing := [host for host in self._hosts if host.name not in self._workers()]:
            if time.monotonic() > until:
                names = ", ".join(host.worker for host in missing)
                raise FleetError(
                    f"no worker {names} is at the scheduler within {CONNECTED_WITHIN_S:g} s",
                    remedy="Start it there: dask worker ADDRESS --name NAME --nthreads 1 --host HOST --no-dashboard "
                    "--dashboard-address 127.0.0.1:0 (docs/fleet.md).",
                )
            time.sleep(POLL_S)
        absent = set(self.hosts) - self.present()
        if absent:
            raise FleetError(f"the worker of host {min(absent)!r} has gone", remedy="See why, and start it again.")

    def _returned(self, host: HostTable, worker: Seen, known: Place) -> Place | None:
        try:
            place = self._looked(host, worker)
            if place is None or place.boot == known.boot:
                return place
            why = "it is on another machine"
        except FleetError as error:
            why = error.fact
        self._foreign[host.name] = worker.number
        self._say(f"The worker {host.worker} has returned, and is not used: {why}.")
        return None

    def _looked(self, host: HostTable, worker: Seen) -> Place | None:
        if worker.threads != 1:
            raise FleetError(
                f"the worker {host.worker} takes {worker.threads} tasks at a time",
                remedy="Start it with --nthreads 1: one trial has its host to itself.",
            )
        task = f"look-{host.name}-{time.monotonic_ns()}"
        future = None
        try:
            if reached := open_of_worker(self._client, worker):
                raise FleetError(
                    f"the worker {host.worker} listens at {' and '.join(reached)}, where whoever reaches it may run "
                    "programs, or reads what it does",
                    remedy=CLOSED_SO,
                )
            future = self._submit(look, write_json({"secrets": self._secrets}), task, worker.address)
            said = parse_json(future.result(timeout=LOOKED_WITHIN_S).encode())
        except FleetError:
            raise
        except ModuleNotFoundError as error:
            raise FleetError(
                f"host {host.name!r} has no Python package {error.name}",
                remedy="There: pip install loadframe-fleet, or `make install` in a checkout.",
            ) from error
        except Exception as error:  # noqa: BLE001 - dask has an exception of its own for each way of going
            self._say(f"host {host.name!r} does not answer: {type(error).__name__}")
            return None
        finally:
            if future is not None:
                future.cancel()
        check_alike({host.name: said["facts"]})
        if said["missing"]:
            raise FleetError(
                f"host {host.name!r} lacks the variables {', '.join(said['missing'])}, which the study names",
                remedy="Set them where its worker is started: secrets are never sent through the scheduler.",
            )
        return Place(worker, str(said["facts"]["boot"]), int(said["process"]))

    def _submit(self, work: Callable[[str], str], text: str, task: str, address: str) -> Any:
        return self._client.submit(
            work, text, key=task, workers=[address], allow_other_workers=False, pure=False, retries=0
        )

    def _answered(self, task: str) -> Came:
        host, future = self._open[task].host, self._open[task].future
        place = self._places[host]
        answer: Message = {}
        try:
            if future.status == "finished":
                answer = parse_json(future.result(timeout=LOOKED_WITHIN_S).encode())
                lost = str(answer.get("died") or "")
                if not lost and (answer.get("task"), answer.get("boot")) != (task, place.boot):
                    lost = "the answer is of another host"
                elif not lost and answer.get("process") != place.process:
                    lost = "the answer is of another worker, which was not looked at"
            else:
                failed = future.status == "error"
                why = type(future.exception(timeout=LOOKED_WITHIN_S)).__name__ if failed else future.status
                lost = f"its worker has gone ({why})"
        except Exception as error:  # noqa: BLE001 - the same: the answer cannot be fetched
            lost = f"its answer has gone ({type(error).__name__})"
        self._drop(task)
        return Came(task, host, None if lost else answer, lost)

    def _gone(self) -> Came | None:
        """A task whose worker has gone, which nothing else reports: dask would wait for it to return."""
        seen = self._workers()
        for task, opened in self._open.items():
            now = seen.get(opened.host)
            if (now is None or now.number != opened.worker.number) and not opened.future.done():
                self._drop(task)
                return Came(task, opened.host, lost="its worker has gone")
        return None

    def _drop(self, task: str) -> None:
        opened = self._open.pop(task)
        opened.lease.end()
        with contextlib.suppress(Exception):  # the scheduler has gone, and every task with it
            opened.future.cancel()


def _client(address: str, tls: TlsTable | None) -> Any:
    security = tls and _dask.Security(
        tls_ca_file=str(tls.ca), tls_client_cert=str(tls.certificate), tls_client_key=str(tls.key),
        require_encryption=True,
    )  # fmt: skip
    try:
        return _dask.Client(address, security=security, timeout=CONNECTED_WITHIN_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise FleetError(
            f"no dask scheduler answers at {address}: {error}", remedy="See that it runs, and its certificates."
        ) from error


@contextlib.contextmanager
def _started(fleet: str, workers: Sequence[str]) -> Iterator[tuple[str, TlsTable]]:
    """In a lease: its address, and the certificate by which it knows us."""
    with LeaseOnDisk.acquire(f"dask workers of the fleet {fleet}") as lease, contextlib.closing(LastWords()) as said:
        folder = lease.folder / "dask"
        make_private(folder, US)
        dask_here.make_key(folder)
        try:
            process = spawn(
                python("loadframe_fleet.dask_here", str(folder), lease.shared_name, *workers), Allowance(user=US),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said.sink, cwd=NO_FOLDER,
            )  # fmt: skip
        finally:
            said.given()
        assert process.stdin is not None and process.stdout is not None
        certificate = folder / dask_here.CERTIFICATE
        try:
            address = _first_line(process.stdout.fileno(), said)
            yield address, TlsTable(ca=certificate, certificate=certificate, key=folder / dask_here.KEY)
        finally:
            end_process(process)
            process.stdout.close()


def _first_line(descriptor: int, said: LastWords) -> str:
    try:
        return Lines(descriptor).line(STARTED_WITHIN_S).decode()
    except (Closed, Silent, WireError) as error:
        raise FleetError(
            "dask did not start on this machine",
            remedy="Its last output is below.",
            details=said.text(LOOKED_WITHIN_S if isinstance(error, Closed) else 0.0),
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
