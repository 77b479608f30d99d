"""What every target can do, and every server that runs already. One contract suite (tests/kinds) runs against each
target."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from loadframe.kinds.exposed import Exposure
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState


class Target(Protocol):
    """A server under test that Loadframe starts privately: temporary data directory, own socket, unprivileged user.

    Life: `create` once, `start`, any number of `apply` and `reset`, `stop`, `destroy` (always, and idempotent).
    All methods raise TargetError with the server's last log lines where it will not do what it is asked.
    """

    kind: str
    embedded: bool
    """True where the target runs inside the driver's processes (SQLite): it has no pids of its own."""
    counter_specs: tuple[CounterSpec, ...]
    """The counters that `counters` answers, with the metric each is known by."""

    def create(self) -> None:
        """Check that the binaries exist (MissingTool), make the data directory."""

    def check(self, state: TargetState) -> None:
        """Have the server's own check look at a state, whether it runs or not; nothing changes by that. TargetError, in
        its words, for one with which it would not start. Whether there is memory for the state is only tried while
        it does not run."""

    def start(self, state: TargetState) -> None:
        """Start with this state and wait until it answers."""

    def apply(self, state: TargetState) -> None:
        """Go to another state with as few restarts as possible; the data stay. What is in front of shards may start
        again for any change: it holds nothing but connections."""

    def reset(self) -> None:
        """Before a step: let high-water marks and caches of handles start again, so that what is read after the step
        belongs to it."""

    def stop(self) -> None:
        """Stop the server cleanly; the data stay."""

    def destroy(self) -> None:
        """Stop whatever runs and remove the data. Never raises for what is gone already."""

    def effective(self) -> dict[str, SettingValue]:
        """The settings as the running target really uses them, and the process's resource limits by their name."""

    def counters(self) -> dict[str, float]:
        """The counters now, by CounterSpec.name."""

    def pids(self) -> tuple[int, ...]:
        """Its processes, the one that all others come from first; empty for an embedded target."""

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """The same by component: "target" for a target of one piece, "shard1", "shard2", ... for one of several."""

    def endpoint(self) -> Endpoint:
        """How a driver reaches it; of a target of several pieces, `shards` has each of them."""

    def healthy(self) -> bool:
        """Whether it answers now. Never raises."""

    def version(self) -> str:
        """Name and version, for example "MariaDB 10.11.6"."""

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the server's log; empty where it has none."""

    def describe(self) -> Mapping[str, str]:
        """Short words on where the data are and how the target was started, for the report."""


@runtime_checkable
class Cache(Protocol):
    """A target that keeps answers of an origin, and counts as `fetches` what it asked for there."""

    def empty(self) -> None:
        """Forget all that is cached. It must have been stopped."""


@runtime_checkable
class Listening(Protocol):
    """A private target that other machines can reach, where its kind says so (KindOfTarget.listening)."""

    def listen_on(self, number: str) -> None:
        """Before its first start: take connections on this numeric address of its machine instead of 127.0.0.1. What
        administers it stays on that or on a socket."""


@runtime_checkable
class Losing(Protocol):
    """A private target that loses its data where it is brought to a state that has no room for them."""

    def has_lost_data(self) -> bool:
        """Whether it has since the last call: then the workload has to make its data again."""


@runtime_checkable
class Noting(Protocol):
    """A target that finds out something that the report of a run has to say."""

    def notes(self) -> tuple[str, ...]:
        """What that is, in sentences; it may become more as long as the target lives."""


@runtime_checkable
class Answering(Protocol):
    """A running server that may have no setting to be asked for."""

    def answers(self) -> bool:
        """Whether it takes a connection. Never raises."""


@runtime_checkable
class Exposing(Protocol):
    """A target that tells counters at a pace of its own: they are read beside the load, by threads."""

    exposure: Exposure


@runtime_checkable
class PrintsStages(Protocol):
    """A target that prints statistics of the stages of a pipeline (docs/pipelines.md)."""

    def stage_files(self) -> Sequence[Path]:
        """The files that they are in; they go on from step to step."""


class Attached(Protocol):
    """A connection to a server that others started. All methods raise TargetError where it does not answer."""

    kind: str
    counter_specs: tuple[CounterSpec, ...]

    @property
    def address(self) -> Mapping[str, str]:
        """How it is found again: kind, address, option_file, user, number (of its name; "" for a socket). No secret."""

    @property
    def words(self) -> str:
        """Where it is, for people."""

    def counters(self) -> dict[str, float]:
        """The counters now, by CounterSpec.name; one that this server does not have is absent."""

    def effective(self) -> dict[str, SettingValue]:
        """The settings as the server uses them."""

    def read(self, name: str) -> SettingValue:
        """A setting of the catalogue, as `write` takes it, once the server has settled."""

    def write(self, name: str, value: SettingValue) -> None:
        """Set it for all new connections, without a restart. TargetError where the server refuses that."""

    def settle(self) -> None:
        """Wait until no other connection of the account changes a setting or the load's schema: a server goes on with
        the statement of a client that was killed, or did not wait. TargetError where it does so for too long."""

    def configured(self) -> dict[str, SettingValue]:
        """The settings as asked for, as far as that can be read."""

    def pid(self) -> int | None:
        """Its process; None where it is on another machine or hidden."""

    def listener(self) -> int | None:
        """The same for certain, as the kernel knows who listens at a socket; None by network, where only the server's
        word says which process it is."""

    def pids(self) -> tuple[int, ...]:
        """All its processes, that one first; empty where it is out of sight."""

    def helpers(self) -> Mapping[str, tuple[int, ...]]:
        """The processes of what it works with and the study names, by the name of each."""

    def local(self) -> bool:
        """Whether it is on this machine."""

    def endpoint(self) -> Endpoint:
        """How a load driver reaches it, with a schema of its own; `attached`."""

    def version(self) -> str:
        """Name and version."""

    def describe(self) -> str:
        """Where it is, in words."""

    def close(self) -> None:
        """Let go of the connection. Never raises."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a running server is, and as whom it is asked. account: with what the user names an account, for advice.
    number: the address that its name had when it was written down; "": it is decided now."""

    address: str = ""
    option_file: Path | None = None
    user: str = ""
    account: str = "--option-file"
    number: str = ""

    def written(self, kind: str, address: str, thing: str, number: str) -> dict[str, str]:
        """See Attached.address. address, number: as they were found. thing: which server it is, by whatever address it
        was reached."""
        return {
            "kind": kind,
            "address": address,
            "option_file": str(self.option_file.absolute()) if self.option_file is not None else "",
            "user": self.user,
            "thing": thing,
            "number": number,
        }


Attach = Callable[[ServerAddress], Attached]
"""Connects to servers of one kind. Raises as `attached.attach` does."""


def shard_name(number: int) -> str:
    """The component's name, from 1 on: it names its folder, its cage and its metrics."""
    return f"shard{number}"
