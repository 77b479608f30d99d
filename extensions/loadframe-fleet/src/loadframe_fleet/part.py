"""One host's part of a study: its driver, which begins when all do, its recorder, and the study's private servers, of
which far.py is the other end. Not thread-safe: a part's processes end with the thread that makes it."""

import base64
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import zstandard

from loadframe.bench.checking import check_study
from loadframe.bench.driver_user import driver_user
from loadframe.bench.evaluation import TICK_S
from loadframe.bench.rig import CagedTarget, allowance, kinds_of, make_cage, make_target
from loadframe.errors import WorkloadError
from loadframe.formats.json_text import write_json
from loadframe.host.leases import Lease
from loadframe.host.privilege import make_private
from loadframe.host.signals import stopped_by_signal
from loadframe.kinds import registry as targets
from loadframe.kinds.behind import Behind
from loadframe.model import Endpoint, TargetState
from loadframe.recording.control import Recorder
from loadframe.recording.metrics import specs_text
from loadframe.study import Study, validate
from loadframe.system.trees import remove_tree
from loadframe.workloads import arrivals, registry
from loadframe.workloads.base import AsksForObjects, Driver, MakesObjects, Marked, ToldTheWarmUp, Workload
from loadframe.workloads.forking import end_fork_servers
from loadframe_fleet.changing import Changing
from loadframe_fleet.looking import listening_number
from loadframe_fleet.wire import PIECE_BYTES, Message

PLAIN = (
    "reset", "forget", "empty", "kill", "stop", "destroy", "effective", "healthy", "version", "describe", "notes",
)  # fmt: skip
"""Requests to a target without arguments."""


class Serving:
    """The study's private servers; its maker closes it. Its methods raise as those of the targets do."""

    def __init__(self, part: "Part", address: str, workload: Workload) -> None:
        """address: of this host, the only one on which they accept connections. workload: makes the data that they
        serve. UserError where the study cannot be carried out here."""
        study = part.study
        check_study(study, driver_here=False)
        self._recorder, self._workload = part.recorder, workload
        number = listening_number(address)
        self._targets: dict[str, CagedTarget] = {}
        self._kind = study.target.kind
        for kind in kinds_of(study):
            self._targets[kind] = target = make_target(study, part.lease, kind, part.user.privilege)
            target.listen_on(number)
        self._does: Mapping[str, Callable[[CagedTarget, Message], Message | None]] = {
            "create": self._create,
            "check": lambda target, said: target.check(state_of(said)),
            "start": lambda target, said: target.start(state_of(said)),
            "apply": lambda target, said: target.apply(state_of(said)),
            **dict.fromkeys(PLAIN, lambda target, said: {"value": getattr(target, said["do"])()}),
            "counters": self._counters,
            "endpoint": lambda target, _: {"value": target.endpoint().address},
            "log": lambda target, said: {"value": target.log_tail(int(said["lines"]))},
            "free": lambda *_: {"value": shutil.disk_usage(part.lease.folder).free},
            "follow": self._follow,
            "install": lambda target, _: cast(MakesObjects, self._workload).make_objects(target.endpoint()),
            "level": lambda target, said: self._workload.set_level(target.endpoint(), float(said["level"])),
            "warm": lambda target, said: cast(AsksForObjects, self._workload).warm(
                target.endpoint(), float(said["level"])
            ),
        }

    def close(self) -> None:
        for target in self._targets.values():
            target.destroy()

    def asked(self, said: Message) -> Message:
        does, target = self._does.get(said["do"]), self._targets.get(said["kind"])
        if does is None or target is None:
            raise ValueError(f"no target here does {said['do']!r}")
        answer = does(target, said) or {}
        return {**answer, "first": list(target.pids()[:1])}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return self._targets[self._kind].processes()

    def _create(self, target: CagedTarget, said: Message) -> Message:
        target.create()
        specs = [replace(spec, name=f"{said['prefix']}{spec.name}") for spec in target.counter_specs]
        self._recorder.note("counters", specs_text(specs))
        return {"specs": [asdict(spec) for spec in target.counter_specs]}

    def _counters(self, target: CagedTarget, said: Message) -> Message:
        """They also go into this host's recording: all measurements of the target then have one clock."""
        counters = target.counters()
        noted = {f"{said['prefix']}{name}": value for name, value in counters.items()}
        self._recorder.note("service", write_json(noted))
        return {"counters": counters, "stopped": stopped_by_signal(target.pids()) or ""}

    def _follow(self, target: CagedTarget, said: Message) -> None:
        self._kind = said["kind"]
        for cage in target.cages:
            self._recorder.follow_cgroup(cage.component, cage.folders)


def is_private(study: Study) -> bool:
    return not study.target.is_running and targets.kind_named(study.target.kind).by_address is None


def state_of(said: Message) -> TargetState:
    return TargetState(**said["state"])


def state_message(state: TargetState) -> Message:
    return {"state": {name: dict(getattr(state, name)) for name in ("settings", "limits", "cpus")}}


LEAST_ROOM_BYTES = 1 << 20
"""What a file system must have left after a step: with less, a log may have lost its end silently."""
RECORDING = "recording.lfr"
FOLLOW_S = 0.25


class Part:
    def __init__(self, message: Message) -> None:
        """message: study (as resolved), name (of the host), drives. UserError where it cannot be carried out here.
        `close` ends and removes everything."""
        self.study: Study = targets.canonical(validate(message["study"], name="the coordinator's study"))
        self.name = message["name"]
        self._stack = ExitStack()
        self._driver: Driver | None = None
        self._workload: Workload | None = None
        self._installed: Endpoint | None = None
        self._folder: Path | None = None
        self._step = ""
        self._log: bytes | None = None
        self._target: Behind | None = None
        self._serving: Serving | None = None
        self._followed: dict[str, tuple[int, ...]] = {}
        self._looked_s = 0.0
        what = f"part of study {self.study.study.name} on host {self.name}"
        with ExitStack() as stack:
            self.lease = stack.enter_context(Lease.acquire(what, visible=self.study.as_toml()))
            recorder = Recorder(self.lease.folder / RECORDING, interval_s=TICK_S)
            self.recorder = stack.enter_context(recorder)
            given = self.study.workload
            self._cage = make_cage("driver", self.study.cage.driver, self.lease)
            self.recorder.follow_cgroup("driver", self._cage.folders)
            trial = registry.make(given.kind, given.options, axis=self.study.load.axis, declared=given.declared)
            missing = [tool.what for tool in registry.check(given.kind) if tool.present is None]
            if message.get("drives") and missing:
                raise WorkloadError(
                    f"the workload needs {', '.join(missing)}, which is not installed there",
                    remedy="Install it on that host; `loadframe fleet check` says what each host lacks.",
                )
            self.user = driver_user(self.study, trial, self.lease)
            self.changing = Changing(self.study, self.name)
            self._stack = stack.pop_all()

    def close(self) -> None:
        self.cancel()
        end_fork_servers()
        self._stack.close()

    def watch(self, number: str, port: int) -> Message:
        """TargetError where nothing is seen to listen there."""
        self._target = Behind(number, port)
        self._follow("target", self._target.pids())
        return {}

    def serve(self, address: str) -> Message:
        """Prepare for own targets there. UserError."""
        self._serving = Serving(self, address, self._made({}))
        self._stack.callback(self._serving.close)
        return {}

    def asked_of_target(self, message: Message) -> Message:
        if self._serving is None:
            raise ValueError("no target is served here")
        try:
            return self._serving.asked(message)
        finally:
            self._follow_served()

    def look(self) -> None:
        """Call it regularly: it follows new processes. RecordingError where the recording has stopped."""
        if time.monotonic() - self._looked_s < FOLLOW_S:
            return
        self._looked_s = time.monotonic()
        self.recorder.check()
        if self._driver is not None:
            self._follow("driver", self._driver.pids())
        if self._target is not None:
            self._follow("target", self._target.pids())
        self._follow_served()

    def mark(self, message: Message) -> Message:
        """Mark a step's start, also on a host that does not drive."""
        warmup_s = float(message["warmup_s"])
        self.recorder.mark(
            "step-start",
            step=message["step"],
            level=float(message["level"]),
            treatment=message["treatment"],
            warmup_s=warmup_s,
            window_s=float(message["duration_s"]) - warmup_s,
        )
        return {}

    def start(self, message: Message, when: Callable[[], float]) -> None:
        """Begin at the instant that `when` returns. UserError."""
        self.cancel()
        endpoint = Endpoint(**message["endpoint"])
        share = float(message["load"] if "load" in message else message["share"])
        self._workload = workload = self._made(message["options"])
        if self._installed != endpoint:
            workload.install(endpoint)
            self._installed = endpoint
        workload.set_level(endpoint, share)
        self._step = message["step"]
        self._folder = self.lease.folder / f"step-{self._step}"
        make_private(self._folder, self.user.privilege)
        if isinstance(workload, ToldTheWarmUp):
            workload.expect(float(message["warmup_s"]))
        self.mark(message)
        with arrivals.when(when):
            self._driver = workload.start(endpoint, share, self._folder, float(message["duration_s"]))
        self._looked_s = 0.0
        self.look()

    @property
    def over(self) -> bool:
        return self._driver is None or not self._driver.running()

    def end(self) -> Message:
        """Once it is over: the driver's result. WorkloadError."""
        driver, workload, folder = self._driver, self._workload, self._folder
        if driver is None or workload is None or folder is None:
            raise WorkloadError("no load was begun there", remedy="Run it again.")
        log = driver.requests().to_bytes()
        self.recorder.mark("step-end", step=self._step)
        self.look()
        if (free := shutil.disk_usage(folder).free) < LEAST_ROOM_BYTES:
            raise WorkloadError(
                f"{folder} has {free:,} bytes left, so the request log may lack its end",
                remedy="Free some space there, or set LOADFRAME_SCRATCH of that host to another place.",
            )
        self._log = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(log)
        return {
            "log_bytes": len(log),
            "sent_bytes": len(self._log),
            "operations": list(workload.operations),
            "marks": list(driver.marks if isinstance(driver, Marked) else ()),
        }

    def counted(self, start_s: float, end_s: float) -> Message:
        """Requests due, and bytes moved, between these instants of this host's clock."""
        driver = self._driver
        if driver is None:
            return {"offered": None, "moved_bytes": None}
        return {"offered": driver.offered(start_s, end_s), "moved_bytes": driver.moved_bytes(start_s, end_s)}

    def waiting(self) -> int:
        return 0 if self._driver is None else self._driver.waiting()

    def cancel(self) -> None:
        if self._driver is not None:
            self._driver.kill()
            self._driver = None
        if self._folder is not None:
            remove_tree(self._folder)
            self._folder = None
        self._log = None

    def flushed(self) -> int:
        """Size of the recording on the disk. RecordingError."""
        self.recorder.flush()
        return self.recorder.path.stat().st_size

    def piece(self, what: str, offset: int, size: int) -> str:
        """Of the log of the last step, or of the recording, in base64; at most PIECE_BYTES."""
        size = min(PIECE_BYTES, size)
        if what == "log":
            data = (self._log or b"")[offset : offset + size]
        elif what == "recording":
            with self.recorder.path.open("rb") as file:
                data = os.pread(file.fileno(), size, offset)
        else:
            raise ValueError(f"there is no {what!r}")
        return base64.b64encode(data).decode()

    def _follow_served(self) -> None:
        for component, pids in (self._serving.processes() if self._serving is not None else {}).items():
            self._follow(component, pids)

    def _made(self, options: Message) -> Workload:
        given = self.study.workload
        allowed = allowance(self.study.cage.driver, self._cage, self.user.privilege, self.lease)
        options = {**given.options, **options}
        return registry.make(given.kind, options, allowed, axis=self.study.load.axis, declared=given.declared)

    def _follow(self, component: str, pids: tuple[int, ...]) -> None:
        if self._followed.get(component) != pids:
            self.recorder.follow(component, pids)
            self._followed[component] = pids
