"""A config.ini as a private cluster on this machine: what of it is started, and what is left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadframe.kinds.ndb.cluster import Cluster
from loadframe.kinds.ndb.config import Section
from loadframe.kinds.ndb.own_settings import Shape, own_name, setting_of
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
    left_out: dict[str, None] = {}
    settings: dict[str, SettingValue] = {}
    for section in cluster.config.sections:
        single = section.kind == "tcp" and not section.default
        for entry in section.entries:
            if entry.name.lower() not in PLACES and (single or own_name(section.kind, entry.name) is None):
                left_out[f"{section.heading[1:-1]}.{entry.name}"] = None
        settings |= _settings(section) if section.default else {}
    data, api = (tuple(node.node_id for node in cluster.of_kind(kind)) for kind in ("ndbd", "mysqld"))
    own = {node.node_id: found for node in cluster.nodes if (found := _settings(node.section))}
    management = cluster.of_kind("ndb_mgmd")[0].node_id
    return AsPrivate(Shape(data, api, management, own), settings, tuple(left_out))


def _settings(section: Section) -> dict[str, SettingValue]:
    """Those that a private cluster takes, in canonical form."""
    found: dict[str, SettingValue] = {}
    for entry in section.entries:
        if (name := own_name(section.kind, entry.name)) is not None:
            found[name] = setting_of(name).read(entry.value)
    return found
