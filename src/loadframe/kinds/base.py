"""What every target, and every running server, can do; the contract suite is loadframe.testing.targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from loadframe.kinds.exposed import Exposure
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState


class Target(Protocol):
    """A server that Loadframe starts privately: `create` once, `start`, any number of `apply` and `reset`, `stop`,
    `destroy` (always, idempotent). All raise TargetError, with the server's last log lines."""

    kind: str
    embedded: bool
    """True where the target runs inside the driver's processes (SQLite): it has no pids of its own."""
    counter_specs: tuple[CounterSpec, ...]

    def create(self) -> None:
        """MissingTool where its programs are not installed."""

    def check(self, state: TargetState) -> None:
        """The server's own check of a state; changes nothing. TargetError, in its words, where it would not start."""

    def start(self, state: TargetState) -> None:
        """Return once it answers."""

    def apply(self, state: TargetState) -> None:
        """Go to another state with few restarts; the data stay. A front end of shards may restart for any change."""

    def reset(self) -> None:
        """Before a step: reset high-water marks and caches of handles, so that what is read after it belongs to it."""

    def stop(self) -> None: ...

    def destroy(self) -> None:
        """Stop whatever runs and remove the data. Never raises for what is gone already."""

    def effective(self) -> dict[str, SettingValue]:
        """What the running target really uses, and the process's resource limits by their name."""

    def counters(self) -> dict[str, float]: ...

    def pids(self) -> tuple[int, ...]:
        """Its processes, the root of the process tree first; empty for an embedded target."""
        return ()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """Its processes by component: "target" alone, or "shard1", "shard2", ... of a target in several pieces."""
        return {"target": self.pids()}

    def endpoint(self) -> Endpoint:
        """`shards` has the endpoint of each of several pieces."""

    def healthy(self) -> bool:
        """Never raises."""

    def version(self) -> str:
        """Name and version, for example "MariaDB 10.11.6"."""

    def log_tail(self, lines: int = 20) -> str:
        return ""

    def describe(self) -> Mapping[str, str]:
        """For the report: where the data are and how it was started."""


@runtime_checkable
class Cache(Protocol):
    """Caches answers of an origin; its counter `fetches` is the requests that it sent there."""

    def empty(self) -> None:
        """The cache must be stopped."""


@runtime_checkable
class Listening(Protocol):
    """Other machines can reach it, where its kind says so (KindOfTarget.listening)."""

    def listen_on(self, number: str) -> None:
        """Called before its first start: accept connections on this numeric address; administration stays local."""


@runtime_checkable
class Losing(Protocol):
    """Loses its data when it goes to a state that has no room for them."""

    def has_lost_data(self) -> bool:
        """Whether it lost data since the last call: then the workload has to create them again."""


@runtime_checkable
class Noting(Protocol):
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report of a run; more may come later in the target's life."""


@runtime_checkable
class Answering(Protocol):
    """May have no setting to read, and is checked by a connection."""

    def answers(self) -> bool:
        """Never raises."""


@runtime_checkable
class Exposing(Protocol):
    """Threads read its counters while the load runs."""

    exposure: Exposure


@runtime_checkable
class PrintsStages(Protocol):
    """A target or a load driver that prints statistics of the stages of a pipeline (docs/pipelines.md)."""

    def stage_files(self) -> Sequence[Path]:
        """A driver's are those of its step; they may appear while it runs."""


class Attached(Protocol):
    """A server that others started, with defaults for one that is not on this machine. All methods raise TargetError
    where it does not answer."""

    kind: str
    counter_specs: tuple[CounterSpec, ...]

    @property
    def address(self) -> Mapping[str, str]:
        """How to find it again: kind, address, option_file, user, thing, number (ServerAddress.written). No secret."""

    @property
    def words(self) -> str: ...

    def counters(self) -> dict[str, float]:
        """Counters by CounterSpec.name; one that this server does not have is absent."""

    def effective(self) -> dict[str, SettingValue]: ...

    def read(self, name: str) -> SettingValue:
        """A setting of the catalogue, in the form that `write` takes, once the server has settled."""

    def write(self, name: str, value: SettingValue) -> None:
        """Set it for all new connections, without a restart. TargetError where the server refuses."""

    def settle(self) -> None:
        """Wait until no other connection of the account changes a setting or the load's schema: a server finishes the
        statement of a killed client. TargetError where that takes too long."""

    def configured(self) -> dict[str, SettingValue]:
        """The configured settings, as far as they can be read."""
        return {}

    def pid(self) -> int | None:
        """None where it is on another machine or hidden."""
        return None

    def listener(self) -> int | None:
        """From the kernel's list of who listens at the socket; None by network."""
        return None

    def pids(self) -> tuple[int, ...]:
        """All its processes, the one of `pid` first; empty where they are not visible."""
        return ()

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        """The processes of the study's helpers, by name."""
        return {}

    def local(self) -> bool:
        return False

    def endpoint(self) -> Endpoint:
        """How a load driver reaches it, with a schema of its own; its `attached` is set."""

    def version(self) -> str: ...

    def describe(self) -> str: ...

    def close(self) -> None:
        """Never raises."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """account: how the user names an account. number: numeric, as recorded; "": the name is resolved now."""

    address: str = ""
    option_file: Path | None = None
    user: str = ""
    account: str = "--option-file"
    number: str = ""

    def written(self, kind: str, address: str, thing: str, number: str) -> dict[str, str]:
        """The record for Attached.address, with the resolved address and number. thing: which server it is."""
        return {
            "kind": kind,
            "address": address,
            "option_file": str(self.option_file.absolute()) if self.option_file is not None else "",
            "user": self.user,
            "thing": thing,
            "number": number,
        }


Attach = Callable[[ServerAddress], Attached]
"""Connects to servers of one kind. Raises as `registry.attach` does."""


def shard_name(number: int) -> str:
    return f"shard{number}"
