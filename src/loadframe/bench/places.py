"""Every place where a change may outlive its command, and reverting there what killed commands have left."""

from collections.abc import Callable, Mapping
from pathlib import Path

from loadframe.changes import durable
from loadframe.changes.host import Host
from loadframe.changes.places import Place, PlaceKind, Places
from loadframe.changes.process import ServerProcess
from loadframe.errors import TargetError
from loadframe.kinds import config_file, registry
from loadframe.kinds.base import Attached
from loadframe.kinds.config_file import ConfigFile
from loadframe.model import ChangeRecord, Endpoint, SettingValue
from loadframe.workloads import databases
from loadframe.workloads import registry as workloads
from loadframe.workloads.databases import marked

SERVICE_S = 180.0
"""Seconds: the owner's commands may take 30 s each; its restart longer."""
SERVER_S = 40.0
"""Seconds: connecting takes up to 10 s, a server's unfinished work (settle) up to 30 s."""


def revert(*, again: bool = True, before: Callable[[str], None] = lambda _: None) -> list[ChangeRecord]:
    """See durable.revert."""
    return durable.revert(places, again=again, before=before)


def _schema(address: Mapping[str, str]) -> Place:
    server = registry.again({**address, "kind": address["server"]})
    server.settle()
    endpoint = server.endpoint()
    if address["database"] != (now := endpoint.options.get("database", "")):
        raise TargetError(
            f"it was made in the database {address['database']}, and the option file names {now} now",
            remedy=f"Name {address['database']} in the option file, and revert again.",
        )
    return OwnSchema(marked(endpoint, address["mark"]), server)


def _way_in(address: Mapping[str, str]) -> str:
    known = registry.attachable(address.get("server", address["kind"]))
    password = f" ({known.password})" if known is not None else ""
    return (
        f"It may be down, or its password may be neither in the option file nor in the environment now{password}: "
        "`loadframe changes revert` tries again. If it is gone for good: `loadframe changes forget`."
    )


def places() -> Places:
    server = PlaceKind(registry.again, longest_s=SERVER_S, way_in=_way_in)
    return {  # those of this package win over names that others take
        **{
            kind: PlaceKind(find, longest_s=SERVER_S, namespace=lambda _: "net")
            for row in workloads.KINDS.values()
            for kind, find in row.places.items()
        },
        "host": PlaceKind(
            lambda address: Host(Path(address["root"])),
            ends_with_boot=True,
            moves=True,
            namespace=lambda setting: "net" if setting.startswith("net.") else "",
        ),
        "process": PlaceKind(ServerProcess.at, ends_with_boot=True, namespace=lambda _: "pid"),
        **dict.fromkeys(registry.attachable_kinds(), server),
        **{
            kind: PlaceKind(row.again, longest_s=SERVICE_S, namespace=lambda _: "net")
            for kind, row in registry.KINDS.items()
            if row.again
        },
        "config": PlaceKind(ConfigFile.at, longest_s=config_file.LONGEST_S, namespace=lambda _: "mnt", way_in=_way_in),
        "schema": PlaceKind(_schema, longest_s=SERVER_S, way_in=_way_in),
    }


THERE, GONE = "present", "absent"


class OwnSchema:
    """Its only setting is whether a schema with our mark exists; it can only be set to absent."""

    def __init__(self, endpoint: Endpoint, server: Attached, remove: Callable[[], None] | None = None) -> None:
        """endpoint: with the mark. remove: its maker's way; default: drop what a killed command left."""
        self._endpoint = endpoint
        self._remove = remove
        self.name = f"schema {endpoint.options['schema']}"
        own = {"mark": endpoint.options[databases.MARK], "database": endpoint.options.get("database", "")}
        self.address: Mapping[str, str] = {**server.address, **own, "kind": "schema", "server": server.kind}
        self.words = server.words

    def make_room(self) -> None:
        """TargetError where there is one that is not ours."""
        databases.make_room(self._endpoint)

    def read(self, name: str) -> SettingValue:
        return THERE if databases.has_own_schema(self._endpoint) else GONE

    def write(self, name: str, value: SettingValue) -> None:
        if self._remove is not None:
            self._remove()
        else:
            databases.drop_schema(self._endpoint)
