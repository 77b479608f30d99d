"""The settings of a private cluster as a catalogue; its config.ini, and a user's config.ini as a private cluster.

A setting of data nodes has its own name; one of API nodes, connections and SQL nodes the prefix "api_", "tcp_" or
"sql_". Settings that would let nodes talk to other hosts, write elsewhere or ask for a password are left out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.formats.plain_numbers import whole
from loadframe.kinds.catalogue import MB, Catalogue, SettingSpec, Tunable, catalogue_in, tunables_in
from loadframe.kinds.mysql.counters import MYSQL_CATALOGUE as MYSQL
from loadframe.model import SettingValue
from loadframe_ndb import threads
from loadframe_ndb.config import Cluster, Section
from loadframe_ndb.settings import SETTINGS, read_cpus

PREFIXES = {"ndbd": "", "mysqld": "api_", "tcp": "tcp_"}
"""The prefix of the names of a section's settings, by the kind of section."""
HOST = "127.0.0.1"
THREADS = re.compile(r"[\w={},\- ]+")


SETTING_BY_NAME = {
    f"{PREFIXES[section]}{setting.name}": setting
    for section, table in SETTINGS.items()
    if section in PREFIXES
    for setting in table.values()
    if not setting.ours
}
"""config.ini's rows for the settings of CATALOGUE."""
CATALOGUE = Catalogue(
    "ndb",
    tuple(replace(setting, name=name) for name, setting in SETTING_BY_NAME.items()),
    "settings of data nodes have the names of config.ini; those of API nodes and connections begin with api_ and tcp_",
)

LINKS, PARTS = 50, 4
"""What has memory of its own in a data node: its links, with the API slots of one SQL node; parts of its redo log."""
TUNABLES = (
    Tunable("MaxNoOfExecutionThreads", values=(2, 4, 8), without_effect=("ThreadConfig", "AutomaticThreadConfig")),
    Tunable("SchedulerSpinTimer", values=(0, 50, 200)),
    Tunable("SchedulerResponsiveness", values=(0, 5, 10)),
    Tunable("tcp_SendBufferMemory", low=MB // 4, high=16 * MB, unit_bytes=LINKS),
    Tunable("RedoBuffer", low=8 * MB, high=128 * MB, unit_bytes=PARTS),
)
"""What a search may vary: nothing that needs an empty file system, which is refused with one copy of the data."""


def own_name(section: str, name: str) -> str | None:
    """The name here of a config.ini setting in any case; None where a private cluster has none."""
    spec = CATALOGUE.spelt(f"{PREFIXES[section]}{name}") if section in PREFIXES else None
    return None if spec is None else spec.name


def checked(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The settings in canonical form. StudyError, also for CPUs and threads that config.ini does not accept."""
    accepted = CATALOGUE.check(settings)
    for name, value in accepted.items():
        setting = SETTING_BY_NAME[name]
        text = str(value)
        try:
            if setting.type == "cpus":
                if not text.isprintable():
                    raise ValueError("CPU numbers such as 0-3,6, in one line")
                read_cpus(text)
            if name == "ThreadConfig":
                if not THREADS.fullmatch(text):
                    raise ValueError("threads are written kind={count=...}, with commas between")
                threads.by_config(text)
        except ValueError as error:
            raise StudyError(
                f"ndb does not accept target.settings.{name} = {value!r}",
                remedy=f"Give what config.ini takes: {error}. (Source: {setting.source})",
            ) from error
    return accepted


SQL_KIND = "ndb-sql"
SQL = "sql_"
CPUS = "cpus"
"""Our own: the CPUs that the SQL node's process is bound to, as by taskset."""
MOST_CONNECTIONS = 32
"""Connections of the pool: the configuration has as many API nodes, and some for others."""
OF_MYSQL = (
    "max_connections", "table_open_cache", "table_open_cache_instances", "table_definition_cache", "thread_cache_size",
    "back_log", "open_files_limit", "thread_handling", "log_bin", "binlog_cache_size", "join_buffer_size",
    "sort_buffer_size", "tmp_table_size", "max_heap_table_size", "max_prepared_stmt_count", "performance_schema",
)  # fmt: skip
_FILE = Path(__file__).with_name("sql_settings.toml")
_OF_NDB = catalogue_in(_FILE)
SQL_NODE = Catalogue(SQL_KIND, (*_OF_NDB.specs, *(MYSQL.known(name) for name in OF_MYSQL)), _OF_NDB.source)
"""The SQL node's settings by its own names."""
_BOUND = SettingSpec(CPUS, "text", True, source="sched_setaffinity(2)")
SQL_CATALOGUE = Catalogue(
    SQL_KIND,
    (*CATALOGUE.specs, *(replace(spec, name=SQL + spec.name) for spec in (*SQL_NODE.specs, _BOUND))),
    f"{CATALOGUE.source}; those of the SQL node with {SQL}",
)
SQL_TUNABLES = (*tunables_in(_FILE), *TUNABLES)


def checked_with_sql(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    own, sql = parted(SQL_CATALOGUE.check(settings))
    if (cpus := sql.get(CPUS)) is not None:
        try:
            sql[CPUS] = ",".join(map(str, sorted(read_cpus(str(cpus)))))
        except ValueError as error:
            raise StudyError(
                f"{SQL_KIND} does not accept target.settings.{SQL}{CPUS} = {cpus!r}",
                remedy=f"Give {error}. (Source: sched_setaffinity(2))",
            ) from error
    return {**checked(own), **{SQL + name: value for name, value in sql.items()}}


def parted(settings: Mapping[str, SettingValue]) -> tuple[dict[str, SettingValue], dict[str, SettingValue]]:
    """The cluster's, and the SQL node's by its own names."""
    own, sql = dict[str, SettingValue](), dict[str, SettingValue]()
    for name, value in settings.items():
        (sql if name.startswith(SQL) else own)[name.removeprefix(SQL)] = value
    return own, sql


@dataclass(frozen=True, slots=True)
class Shape:
    """own: settings that one node has instead of those of all, in canonical form."""

    data: Sequence[int]
    api: Sequence[int]
    management: int = 1
    own: Mapping[int, Mapping[str, SettingValue]] = field(default_factory=dict)


def shape_of(data_nodes: int, api_slots: int) -> Shape:
    """Numbered as config.ini numbers them."""
    first_slot = data_nodes + 2
    return Shape(data=range(2, first_slot), api=range(first_slot, first_slot + api_slots))


def config_text(shape: Shape, settings: Mapping[str, SettingValue], *, port: int, folders: Mapping[int, Path]) -> str:
    """All on this machine. folders: data directories by node number."""
    lines: list[str] = []
    for section in PREFIXES:
        lines += [f"[{section} default]", *_written(section, settings), ""]
    lines += _node("ndb_mgmd", shape.management, folders, f"PortNumber={port}")
    for section, numbers in (("ndbd", shape.data), ("mysqld", shape.api)):
        for number in numbers:
            lines += _node(section, number, folders, *_written(section, shape.own.get(number, {})))
    return "\n".join(lines)


def _written(section: str, settings: Mapping[str, SettingValue]) -> Iterable[str]:
    for name, value in settings.items():
        setting = SETTING_BY_NAME[name]
        if setting.section == section:
            yield f"{setting.name}={setting.show(value)}"


def _node(section: str, number: int, folders: Mapping[int, Path], *more: str) -> list[str]:
    folder = [f"DataDir={folders[number]}"] if number in folders else []
    return [f"[{section}]", f"NodeId={number}", f"HostName={HOST}", *folder, *more, ""]


HEADING = re.compile(r"\[(\w+)(?:\((\w+)\))?\]")


def read_full_config(text: str) -> dict[str, SettingValue]:
    """The settings as ndb_mgmd prints them, by our names. Of several nodes or connections the first one counts."""
    settings: dict[str, SettingValue] = {}
    section = ""
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if (heading := HEADING.fullmatch(line)) is not None:
            section = heading[1].lower()
        elif equals and (known := own_name(section, name)) is not None:
            settings.setdefault(known, canonical(known, value))
    return settings


def canonical(name: str, text: str) -> SettingValue:
    """A default of the program may be outside of the manual's bounds."""
    try:
        return SETTING_BY_NAME[name].read(text)
    except ValueError:
        number = whole(text)
        return text if number is None else number


PLACES = frozenset(
    {"nodeid", "id", "hostname", "portnumber", "serverport", "datadir", "filesystempath", "backupdatadir"}
)
"""Settings of who and where a node is, in small letters."""


@dataclass(frozen=True, slots=True)
class AsPrivate:
    """shape, settings: of the cluster. left_out: "SECTION.NAME" of settings that a private cluster cannot have; the
    places of nodes, which always change, are not listed."""

    shape: Shape
    settings: Mapping[str, SettingValue]
    left_out: tuple[str, ...]


def as_private(cluster: Cluster) -> AsPrivate:
    """A private cluster with the nodes of the file by their numbers, and one management server. The file must have no
    errors."""
    left_out: dict[str, None] = {}
    settings: dict[str, SettingValue] = {}
    for section in cluster.config.sections:
        single = section.kind == "tcp" and not section.default
        for entry in section.entries:
            if entry.name.lower() not in PLACES and (single or own_name(section.kind, entry.name) is None):
                left_out[f"{section.heading[1:-1]}.{entry.name}"] = None
        settings |= _settings(section) if section.default else {}
    data, api = (tuple(node.node_id for node in cluster.of_kind(kind)) for kind in ("ndbd", "mysqld"))
    own = {node.node_id: of_node for node in cluster.nodes if (of_node := _settings(node.section))}
    management = cluster.of_kind("ndb_mgmd")[0].node_id
    return AsPrivate(Shape(data, api, management, own), settings, tuple(left_out))


def _settings(section: Section) -> dict[str, SettingValue]:
    settings: dict[str, SettingValue] = {}
    for entry in section.entries:
        if (name := own_name(section.kind, entry.name)) is not None:
            settings[name] = SETTING_BY_NAME[name].read(entry.value)
    return settings
