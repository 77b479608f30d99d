"""A config.ini as a private cluster on this machine: what of it is started, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loadframe.kinds.ndb.cluster import Cluster
from loadframe.kinds.ndb.config import Section
from loadframe.kinds.ndb.own_settings import PREFIXES, Shape, setting_or_none
from loadframe.model import SettingValue

PLACES = frozenset(
    {"nodeid", "id", "hostname", "portnumber", "serverport", "datadir", "filesystempath", "backupdatadir"}
)
"""Who and where a node is, in small letters."""


@dataclass(frozen=True, slots=True)
class AsPrivate:
    """shape, settings: of the cluster. left_out: "SECTION.NAME" of what has no place in it, such as settings of single
    connections; where nodes are and where they write is always another place, and is not told."""

    shape: Shape
    settings: Mapping[str, SettingValue]
    left_out: tuple[str, ...]


def as_private(cluster: Cluster) -> AsPrivate:
    """With the nodes of the file by their numbers, and one management server. The file has no errors."""
    left_out = dict.fromkeys(_left_out(cluster))
    settings: dict[str, SettingValue] = {}
    for section in PREFIXES:
        for default in cluster.config.of_kind(section, default=True):
            settings |= _settings(default)
    data, api = (tuple(node.node_id for node in cluster.of_kind(kind)) for kind in ("ndbd", "mysqld"))
    own = {node.node_id: found for node in cluster.nodes if (found := _settings(node.section))}
    management = cluster.of_kind("ndb_mgmd")[0].node_id
    return AsPrivate(Shape(data, api, management, own), settings, tuple(left_out))


def _settings(section: Section) -> dict[str, SettingValue]:
    """Those that a private cluster takes, in canonical form."""
    found: dict[str, SettingValue] = {}
    for entry in section.entries:
        name = f"{PREFIXES.get(section.kind, '?')}{entry.name}"
        setting = setting_or_none(name)
        if setting is not None:
            found[f"{PREFIXES[section.kind]}{setting.name}"] = setting.read(entry.value)
    return found


def _left_out(cluster: Cluster) -> Iterator[str]:
    for section in cluster.config.sections:
        single = section.kind == "tcp" and not section.default
        for entry in section.entries:
            name = f"{PREFIXES.get(section.kind, '?')}{entry.name}"
            if entry.name.lower() not in PLACES and (single or setting_or_none(name) is None):
                yield f"{section.heading[1:-1]}.{entry.name}"
