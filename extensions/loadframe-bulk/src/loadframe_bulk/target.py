"""A bulk loader in front of database shards: a server that has a process load each file, and private PostgreSQLs behind
it. Its own settings are `pool` and `batch_bytes`; those of the shards begin with "shard_". The loader (server.py) is
modelled on the one of the story; it runs as its clients, the load driver, do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from loadframe.connections.unix_socket import listening
from loadframe.errors import StudyError
from loadframe.formats.json_text import write_json
from loadframe.host.environment import python
from loadframe.host.identity import children
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance, Resources, stated
from loadframe.kinds.base import Target
from loadframe.kinds.catalogue import catalogue_in
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.postgres.kind import PostgresShards, PostgresTarget, requirements
from loadframe.kinds.private_server import PrivateServer, write_secret
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.version import __version__
from loadframe.workloads.postgres import parameters
from loadframe_bulk.metrics import IN_FRONT

CATALOGUE = catalogue_in(Path(__file__).with_name("settings.toml"))
SHARD = "shard_"
LOADER = IN_FRONT[0]
MOST_FILES_AT_ONCE = 256
PREPARED = {"max_prepared_transactions": MOST_FILES_AT_ONCE, "max_connections": MOST_FILES_AT_ONCE + 20}
"""A file is loaded by a prepared transaction on each shard; some connections are kept for counts and counters."""


class BulkLoaderTarget(PostgresShards):
    """See kinds.base.Target. Its components are "loader" and the shards; its counters are those of the shards."""

    kind = "bulk-loader"

    def __init__(self, lease: Lease, resources: Mapping[str, Resources]) -> None:
        """resources: of "loader", an Allowance, and of each shard in order."""
        behind = [shard for name, shard in resources.items() if name != LOADER]
        super().__init__(lease=lease, resources=behind)
        self._allowance = stated(resources[LOADER])
        self._server = _Server(lease, LOADER, self._allowance.user, None)
        self._state = TargetState()

    def create(self) -> None:
        self._server.create()
        super().create()

    def check(self, state: TargetState) -> None:
        """Only the shards have a check; the loader accepts whatever its catalogue allows."""
        super().check(_own_and_behind(state)[1])

    def start(self, state: TargetState) -> None:
        own, behind = _own_and_behind(state)
        super().start(behind)
        self._start_loader(state, own)

    def apply(self, state: TargetState) -> None:
        """The loader restarts for any difference: it holds only connections, which restarting shards would break."""
        own, behind = _own_and_behind(state)
        super().apply(behind)
        if state != self._state:
            self._server.stop()
            self._start_loader(state, own)

    def _start_loader(self, state: TargetState, own: Mapping[str, SettingValue]) -> None:
        self._state = state
        self._server.start(own, shards_of(super().endpoint()), self._allowance)

    def reset(self) -> None:
        self._check_alive()
        super().reset()

    def stop(self) -> None:
        try:
            self._server.stop()
        finally:
            super().stop()

    def destroy(self) -> None:
        self._server.destroy()
        super().destroy()

    def effective(self) -> dict[str, SettingValue]:
        """The loader's settings, used as asked; the shards' under "shard_"; the resource limits of the shards."""
        behind = super().effective().items()
        shown = {name if name.startswith("RLIMIT_") else f"{SHARD}{name}": value for name, value in behind}
        return {**self._server.settings, **shown}

    def counters(self) -> dict[str, float]:
        self._check_alive()
        return super().counters()

    def _check_alive(self) -> None:
        if (died := self._server.died()) is not None:
            raise died

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {LOADER: self._server.pids(), **super().processes()}

    def endpoint(self) -> Endpoint:
        """address: the loader's socket. shards: each of them, in order."""
        return Endpoint(self.kind, str(self._server.socket), {}, shards=super().endpoint().shards)

    def stage_files(self) -> Sequence[Path]:
        return (self._server.stages,)

    def healthy(self) -> bool:
        return self._server.died() is None and super().healthy()

    def version(self) -> str:
        return f"bulk-loader {__version__} before {super().version()}"

    def log_tail(self, lines: int = 20) -> str:
        return f"loader:\n{self._server.log_tail(lines)}\n{super().log_tail(lines)}"

    def describe(self) -> Mapping[str, str]:
        return {**super().describe(), "loader": " ".join(self._server.command)}


class _Server(PrivateServer):
    name = "the bulk loader"
    settings: Mapping[str, SettingValue] = {}

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "loader.sock"

    @property
    def stages(self) -> Path:
        return self.folder / "run" / "stages.jsonl"

    def start(self, given: Mapping[str, SettingValue], shards: Sequence[str], allowance: Allowance) -> None:
        """shards: their connection strings, which hold passwords. TargetError where it does not begin to listen."""
        self.settings = {**CATALOGUE.defaults(), **given}
        shards_file = self.folder / "shards.json"
        shards_file.unlink(missing_ok=True)
        write_secret(shards_file, write_json(shards))
        self.give(shards_file)
        command = python("loadframe_bulk.server", str(self.socket), str(shards_file))
        command += [str(self.settings["batch_bytes"]), str(self.settings["pool"]), str(self.stages)]
        self.launch(command, allowance, lambda: listening(str(self.socket)) is not None)

    def pids(self) -> tuple[int, ...]:
        """The listening process, and those that load at this moment."""
        return () if self.pid is None else (self.pid, *children(self.pid))


def shards_of(endpoint: Endpoint) -> list[str]:
    from psycopg.conninfo import make_conninfo

    return [make_conninfo(**parameters(shard)) for shard in endpoint.shards]


def check_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """In canonical form; those of the shards have SHARD before their names. StudyError."""
    own, behind = _parted(settings)
    return {**own, **{f"{SHARD}{name}": value for name, value in behind.items()}}


def _parted(settings: Mapping[str, SettingValue]) -> tuple[dict[str, SettingValue], dict[str, SettingValue]]:
    own = {name: value for name, value in settings.items() if not name.startswith(SHARD)}
    behind = {name.removeprefix(SHARD): value for name, value in settings.items() if name.startswith(SHARD)}
    return CATALOGUE.check(own), PostgresTarget.check_settings(behind)


def _own_and_behind(state: TargetState) -> tuple[dict[str, SettingValue], TargetState]:
    own, behind = _parted(state.settings)
    return own, TargetState({**PREPARED, **behind}, state.limits)


def _never_alone(lease: Lease, resources: Resources) -> Target:
    raise StudyError(
        "a bulk-loader loads into shards, and the study gives it none",
        remedy="Add target.shards, for example shards = 4.",
    )


KIND = KindOfTarget(
    BulkLoaderTarget.kind,
    _never_alone,
    CATALOGUE,
    check_settings,
    requirements,
    make_shards=BulkLoaderTarget,
    before=(LOADER,),
)
