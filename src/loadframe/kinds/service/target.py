"""A service of the user's own, started privately as an unprivileged user."""

import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from loadframe.connections.address import accepts
from loadframe.errors import NotRecovered, TargetError
from loadframe.formats.json_text import JsonError, parse_json, write_json
from loadframe.formats.said import words
from loadframe.host import identity, to_its_end
from loadframe.host.environment import NO_FOLDER
from loadframe.host.leases import Lease
from loadframe.host.privilege import of_uid
from loadframe.host.processes import Allowance, Resources, read_as, runnable, spawn, user_of
from loadframe.kinds.behind import family
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.exposed import Exposure, sources_of, stage_files
from loadframe.kinds.private_server import PrivateTarget
from loadframe.kinds.service import file_settings
from loadframe.kinds.service.discovery import Found, find, name_of, where
from loadframe.kinds.service.file_settings import OwnFile
from loadframe.kinds.service.placeholders import KIND, catalogue, filled, knob_of, of_environment, passed, shown
from loadframe.kinds.service.read_back import read
from loadframe.kinds.service.server import Company, Server, started_by
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.study.declaration import TargetTable

WITHIN_S = 30.0
MOST_BYTES = 1 << 20
SETTLED_S, LOOK_EVERY_S = 5.0, 0.05
RESTARTED_S = 120.0
BY_HAND = "See the service's own log; `loadframe changes revert` sets the file back and restarts it."


class ServiceTarget(PrivateTarget, Server):
    kind = KIND
    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, target: TargetTable, catalogue: Catalogue, lease: Lease, resources: Resources) -> None:
        self._allowance = resources.run_by(started_by(target.user, lease))
        Server.__init__(self, lease, self._allowance.user, target)
        self.catalogue = catalogue
        asker = replace(self._allowance, groups=(), cpus=None)  # the cost of asking is not the service's
        names = target.exposed_names
        asked = sources_of(target.metrics, tuple(names), lambda: self.port or 0, lambda: asker, lambda: passed(target))
        self.exposure = Exposure(asked, names)
        self._company = Company(target, lease, resources.cpus)

    def create(self) -> None:
        self._company.create()
        super().create()

    def start(self, state: TargetState) -> None:
        self._company.start({name: shown(value) for name, value in self._wanted(state).settings.items()})
        super().start(state)

    def destroy(self) -> None:
        super().destroy()
        self._company.destroy()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {"target": self.pids(), **self._company.processes()}

    def counters(self) -> dict[str, float]:
        self._running()
        self._company.check()
        self.bound_log()
        return {}

    def notes(self) -> tuple[str, ...]:
        return (*self.noted, *self._company.noted())

    def stage_files(self) -> Sequence[Path]:
        return stage_files(self._target.metrics, self.log)

    def pids(self) -> tuple[int, ...]:
        first = self.pid
        return () if first is None else family(first)

    def endpoint(self) -> Endpoint:
        address = f"127.0.0.1:{self.port}"
        return Endpoint(self.kind, address, {"paths": self._target.paths or "/", "host": address})

    def _begin(self, wanted: TargetState, allowance: Allowance) -> None:
        self.begin(wanted, allowance, self._company.places())
        self._run_commands(wanted, wanted.settings, allowance)

    def _change(self, wanted: TargetState, changed: Sequence[str]) -> None:
        """A setting that a state leaves out needs a start."""
        if any(name not in wanted.settings for name in changed):
            PrivateTarget.stop(self)
            self.start(wanted)
            return
        self.files.write(wanted, self.values(wanted))
        self._run_commands(wanted, changed, self._allowed(wanted))
        self._entered(wanted)

    def _run_commands(self, wanted: TargetState, names: Iterable[str], allowance: Allowance) -> None:
        values = self.values(wanted)
        for name in names:
            with_value = {**values, "value": values[name]}
            if command := [filled(word, with_value) for word in self._target.setting[name].command]:
                self.run(command, allowance, f"{name} was not applied")

    def _answers(self) -> bool:
        return self.accepts()

    def _entered(self, state: TargetState) -> None:
        self._effective = used = dict(state.settings)
        values, allowance = self.values(state), self._allowed(state)
        for name, table in self._target.setting.items():
            if table.read_back is not None:
                run = partial(self.run, allowance=allowance, fact=f"target.setting.{name}.read_back")
                value = read(name, table.read_back, values, run, self.files.text_of)
                used[name] = self.catalogue.shown(name, shown(value))
        self._state = state


class RunningService:
    kind = KIND
    counter_specs: tuple[CounterSpec, ...] = ()

    def __init__(self, target: TargetTable) -> None:
        self._target = target
        self._restarting = False
        self._noted: dict[str, None] = {}
        self._found: Found = find(target)
        names = target.exposed_names
        sources = sources_of(
            target.metrics, tuple(names), self._port, lambda: Allowance(of_uid(self._user())), lambda: passed(target)
        )
        self.exposure = Exposure(sources, names)
        self._company = Company(target, None, None)
        self._company.start()
        self._catalogue: Catalogue = catalogue(
            (knob_of(name, table), table.apply == "command" or bool(table.file))
            for name, table in target.setting.items()
        )
        self.words = self._found.words
        first = self._found.first[0]
        kept = {"kind", "pid", "listen", "unit", "container", "setting", "owned", "restart"}
        self.address: Mapping[str, str] = {
            "kind": KIND,
            "target": write_json(target.model_dump(mode="json", by_alias=True, include=kept)),
            "words": self.words,
            **({"thing": f"{first.pid}.{first.started_ticks}.{first.namespace}"} if target.pid is not None else {}),
        }

    @classmethod
    def again(cls, address: Mapping[str, str]) -> "RunningService":
        """KeyError, ValueError for an invalid address; TargetError."""
        try:
            return cls(TargetTable.model_validate(parse_json(address["target"])))
        except (ValidationError, JsonError) as error:
            raise ValueError(words(error)) from error

    def stage_files(self) -> Sequence[Path]:
        return stage_files(self._target.metrics)

    def counters(self) -> dict[str, float]:
        self._user()
        return {}

    def effective(self) -> dict[str, SettingValue]:
        return {name: self._used(name) for name, table in self._target.setting.items() if table.read_back is not None}

    def read(self, name: str) -> SettingValue:
        """The value in use, or the one that we set in its file. TargetError without a read_back; ChangeError."""
        table = self._target.setting[name]
        pending = self._file(table.file).read(table.key) if table.file and table.key else None
        return self._used(name) if pending is None else self._catalogue.shown(name, shown(pending))

    def _used(self, name: str) -> SettingValue:
        table = self._target.setting[name]
        if table.read_back is None:
            raise TargetError(
                f"target.setting.{name} has no read_back, so what a running service uses is not known",
                remedy="Say where its value is read: it must be known to be put back.",
            )
        value = read(name, table.read_back, self._values(), self._run, self._text_of)
        return self._catalogue.shown(name, shown(value))

    def write(self, name: str, value: SettingValue) -> None:
        """Run its command, or set it in its file and restart; returns once it is read back. TargetError,
        ChangeError."""
        table = self._target.setting[name]
        if table.file:
            file = self._file(table.file)
            file.set(table.key, value)
            self._restarting = True  # until it is found again
            to_its_end.restart(self._target.restart, RESTARTED_S, self._silent, "the service", BY_HAND)
            self._restarting = False
            file.done()
        else:
            values = {**self._values(), "value": shown(value)}
            self._run([filled(word, values) for word in table.command])
        until = time.monotonic() + SETTLED_S
        while self.read(name) != value and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)

    def settle(self) -> None:
        """A setting is applied when `write` returns."""

    def configured(self) -> dict[str, SettingValue]:
        """The configured values are not known."""
        return {}

    def answers(self) -> bool:
        return accepts(*where(self._found.address))

    def pid(self) -> int | None:
        return next(iter(self.pids()), None)

    listener = pid

    def pids(self) -> tuple[int, ...]:
        """A restarted service is found by its port or its group."""
        if self._target.pid is None and not any(identity.alive(process) for process in self._found.first):
            with suppress(TargetError):  # it may come back
                service = find(self._target)
                if service.first and not self._restarting:  # it may be another program now
                    pids = " and ".join(str(process.pid) for process in self._found.first)
                    ended = f"{self.words} ended while it was measured (pid {pids})"
                    then = f"pid {service.first[0].pid} took its place: steps before and after may differ"
                    self._noted.setdefault(f"{ended}, and {then}.")
                self._found = service
        return self._found.pids()

    def notes(self) -> tuple[str, ...]:
        return tuple(self._noted)

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        return self._company.processes()

    def local(self) -> bool:
        return True

    def endpoint(self) -> Endpoint:
        address = self._found.address
        options = {"paths": self._target.paths or "/", "host": address}
        return Endpoint(self.kind, address, options, attached=True)

    def version(self) -> str:
        first = self.pid()
        return f"service {'ended' if first is None else name_of(first)}"

    def describe(self) -> str:
        return self.words

    def close(self) -> None:
        """Nothing is kept open."""

    def _file(self, name: str) -> OwnFile:
        tables = [table for table in self._target.setting.values() if table.file == name]
        return OwnFile(Path(name), tables[0].format or file_settings.of_name(name), [table.key for table in tables])

    def _silent(self) -> str | None:
        if not self.pids():
            return "no process of it is found"
        return None if self.answers() else f"{self._found.address} accepts no connection"

    def _values(self) -> dict[str, str]:
        return {"port": str(self._port()), **of_environment(self._target)}

    def _port(self) -> int:
        return where(self._found.address)[1]

    def _user(self) -> int:
        pids = self.pids()
        try:
            return user_of(pids[0])
        except (IndexError, OSError) as error:
            raise NotRecovered(
                f"the service has ended: {self.words}",
                remedy="Its own log says why; start it and run again.",
                died="its process ended",
            ) from error

    def _text_of(self, path: Path) -> str:
        try:
            return read_as(self._user(), path, MOST_BYTES)[:MOST_BYTES].decode("utf-8", "replace")
        except OSError as error:
            raise TargetError(f"{path} cannot be read: {error}", remedy="Correct read_back.file.") from error

    def _run(self, command: Sequence[str]) -> str:
        user = of_uid(self._user())
        program = command[0] if "/" in command[0] else runnable(command[0], user) or command[0]
        command_line = " ".join(command)
        with tempfile.TemporaryFile() as output:
            process = spawn(
                [program, *command[1:]],
                Allowance(user),
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=NO_FOLDER,
                env=passed(self._target),
            )
            try:
                in_time = to_its_end.ended(process, output, WITHIN_S)
            finally:
                process.kill()  # no effect where it has ended
                process.wait()
            text, fact = to_its_end.last_printed(output), f"ended with exit status {process.returncode}"
        if not in_time:
            text, fact = "", f"did not end within {WITHIN_S:g} s, or prints without an end"
        if not in_time or process.returncode != 0:
            raise TargetError(f"`{command_line}` {fact}", remedy="Correct it.", details=text[-2000:])
        return text
