"""A running server, as processes: its CPUs, its nice value, its limit of open files, one value for all threads of its
main process and of those that it has started. A process is identified by pid and start time, so that a reused pid is
never touched."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.changes.places import Gone
from loadframe.errors import ChangeError, RecordingError
from loadframe.host.identity import Identity, alive, children
from loadframe.host.privilege import CAP_SYS_NICE, holds
from loadframe.host.processes import cpu_list, parse_cpus, threads
from loadframe.model import SettingValue

if TYPE_CHECKING:
    from loadframe.recording.procfs import ResourceLimit

CPUS, NICE, FILES = "cage.cpus", "nice", "RLIMIT_NOFILE"
"""Names of these settings in a TargetState. FILES is the soft limit: below the hard one a user may revert it."""
DIFFERENT = " and "


class ServerProcess:
    """See places.Place."""

    def __init__(self, process: Identity, server: str, words: str) -> None:
        """process: the server's main one. server: its kind. words: its name in messages."""
        self._process = process
        self.words = words
        self.address: Mapping[str, str] = {
            "kind": "process",
            "server": server,
            "pid": str(process.pid),
            "started_ticks": str(process.started_ticks),
            "namespace": process.namespace,
            "words": words,
        }

    @classmethod
    def at(cls, address: Mapping[str, str]) -> ServerProcess:
        process = Identity(int(address["pid"]), int(address["started_ticks"]), address.get("namespace", ""))
        return cls(process, address["server"], address["words"])

    def check(self, name: str, value: SettingValue) -> None:
        """ChangeError where it cannot be set to this value, or could not be reverted. Writes the current value back,
        which the kernel allows only to those who may change it."""
        now = self.read(name)
        if DIFFERENT in str(now):
            raise ChangeError(
                f"{name} of {self.words} is not one value: its threads have {now}",
                remedy="They were set one by one, and that could not be restored. Omit it.",
            )
        self.write(name, now)
        pid = self._process.pid
        if (
            name == NICE
            and now != value
            and not holds(CAP_SYS_NICE)  # setpriority(2); getrlimit(2) on RLIMIT_NICE
            and 20 - min(int(now), int(value)) > _limit("Max nice priority", pid).soft
        ):
            raise ChangeError(
                f"nice of {self.words} cannot go from {now} to {value} and back",
                remedy="Run Loadframe as root, give the server's user a limit of nice, or omit it.",
            )
        if name == FILES and int(value) > (most := _limit("Max open files", pid).hard):
            raise ChangeError(
                f"{self.words} may open at most {most:.0f} files, its hard limit; {value} were requested",
                remedy="Request less, or have the server started with a higher limit.",
            )

    def read(self, name: str) -> SettingValue:
        values = {value: None for task in self._tasks(name) if (value := self._value(name, task)) is not None}
        if len(values) == 1:
            return next(iter(values))
        if not values:
            raise self._gone()
        return DIFFERENT.join(map(str, values))

    def write(self, name: str, value: SettingValue) -> None:
        done: set[int] = set()
        while new := [task for task in self._tasks(name) if task not in done]:
            for task in new:
                try:
                    _set(name, task, value)
                except ProcessLookupError:  # the thread has ended
                    pass
                except (OSError, ValueError) as error:
                    raise self._refused(f"{name} of {self.words} cannot be set to {value}", error) from error
            done.update(new)

    def _tasks(self, name: str) -> Iterator[int]:
        pid = self._process.pid
        if not alive(self._process):
            raise self._gone()
        for process in (pid, *children(pid)):
            yield from (process,) if name == FILES else sorted(threads(process))

    def _value(self, name: str, task: int) -> SettingValue | None:
        try:
            if name == CPUS:
                return cpu_list(os.sched_getaffinity(task))
            if name == NICE:
                return os.getpriority(os.PRIO_PROCESS, task)
            return int(_limit("Max open files", task).soft)
        except ProcessLookupError:
            return None
        except OSError as error:
            raise self._refused(f"{name} of {self.words} cannot be read", error) from error

    def _gone(self) -> Gone:
        return Gone(f"process {self._process.pid} of {self.words} has ended", remedy="Run again with the new one.")

    def _refused(self, what: str, error: OSError | ValueError) -> ChangeError:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return ChangeError(
            f"{what}: {why}", remedy="Run Loadframe as root or as the user who runs the server, or omit it."
        )


def _set(name: str, task: int, value: SettingValue) -> None:
    if name == CPUS:
        wanted = parse_cpus(str(value))
        os.sched_setaffinity(task, wanted)
        if (given := os.sched_getaffinity(task)) != wanted:  # a cpuset silently leaves CPUs out
            raise ValueError(f"the kernel lets it have only CPU {cpu_list(given)}")
    elif name == NICE:
        os.setpriority(os.PRIO_PROCESS, task, int(value))
    else:
        resource.prlimit(task, resource.RLIMIT_NOFILE, (int(value), int(_limit("Max open files", task).hard)))


def _limit(title: str, pid: int) -> ResourceLimit:
    from loadframe.recording.procfs import parse_limits  # most commands change no process

    try:
        return parse_limits(Path(f"/proc/{pid}/limits").read_bytes())[title]
    except (FileNotFoundError, RecordingError) as error:  # empty while the process is ending
        raise ProcessLookupError from error
