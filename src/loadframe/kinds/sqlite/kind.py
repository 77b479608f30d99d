"""SQLite, the embedded kind of target: one database file; the driver's own workers are the server. Its settings
(PRAGMAs), their bounds and defaults: https://www.sqlite.org/pragma.html."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from loadframe.errors import StudyError, TargetError
from loadframe.formats.json_text import write_json
from loadframe.host.leases import Lease, filesystem
from loadframe.host.privilege import make_private, rights_of
from loadframe.host.processes import Resources, stated
from loadframe.kinds.base import Target
from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.model import Endpoint, Requirement, SettingValue, TargetState
from loadframe.system.trees import remove_tree

_FILE = Path(__file__).with_name("settings.toml")
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""Settings in the order in which to set them. The default of busy_timeout is that of Python's sqlite3.connect (5 s)."""

NUMBERED = {name: tuple(map(str, CATALOGUE.known(name).choices)) for name in ("synchronous", "temp_store")}
"""PRAGMAs that answer with the index of the word they were set to."""

IN_THE_FILE = frozenset({"page_size"})

PERSISTENT_JOURNAL_MODES = frozenset({"WAL", "DELETE"})
"""What the file itself remembers: WAL, or not WAL, which a new connection reads as DELETE."""

COUNTERS = tuple(counters_in(_FILE.with_name("metrics.txt"), "file").values())


class SqliteTarget(Target):
    """The file keeps page_size and WAL; each connection sets the rest: JSON in options["pragmas"] of `endpoint`."""

    kind = "sqlite"
    embedded = True
    counter_specs = COUNTERS

    def __init__(self, lease: Lease, resources: Resources) -> None:
        self._owner = stated(resources).user
        self._folder = lease.folder / "sqlite"
        self._file = self._folder / "database.sqlite"
        self._settings: dict[str, SettingValue] | None = None

    def create(self) -> None:
        try:
            if not self._folder.exists():
                make_private(self._folder, self._owner)
                with rights_of(self._owner):
                    self._file.touch(mode=0o600)  # SQLite gives its owner the files next to it (os_unix.c)
        except OSError as error:
            raise TargetError(
                f"Cannot make {self._folder}: {error.strerror}", remedy="Set LOADFRAME_SCRATCH."
            ) from error

    def check(self, state: TargetState) -> None:
        if state.limits:
            raise StudyError(
                f"SQLite has no process of its own that {', '.join(state.limits)} could hold",
                remedy="Omit the limits, or study a server.",
            )
        CATALOGUE.check(state.settings)

    def start(self, state: TargetState) -> None:
        self.apply(state)

    def apply(self, state: TargetState) -> None:
        """Changing page_size rewrites the file (VACUUM). TargetError where a process still uses the database."""
        self.check(state)
        settings = CATALOGUE.check(state.settings)
        wanted = {**CATALOGUE.defaults(), **settings}
        with self._connection(settings) as connection:
            mode = str(wanted["journal_mode"])
            mode = mode if mode in PERSISTENT_JOURNAL_MODES else "DELETE"
            if _ask(connection, "page_size") != wanted["page_size"]:
                connection.execute("PRAGMA journal_mode = DELETE")  # in WAL mode the page size cannot change
                connection.execute(f"PRAGMA page_size = {wanted['page_size']}")
                connection.execute("VACUUM")
            self._expect(connection, "page_size", wanted["page_size"])
            connection.execute(f"PRAGMA journal_mode = {mode}")
            self._expect(connection, "journal_mode", mode)
        self._settings = settings

    def reset(self) -> None:
        """Bring the write-ahead log back into the file, so that its size afterwards belongs to the step."""
        with self._connection(self._started()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def stop(self) -> None:
        self._settings = None

    def destroy(self) -> None:
        self._settings = None
        remove_tree(self._folder)

    def effective(self) -> dict[str, SettingValue]:
        settings = self._started()
        with self._connection(settings) as connection:
            for name, value in self._pragmas(settings).items():
                connection.execute(f"PRAGMA {name} = {value}")
            return {name: _ask(connection, name) for name in CATALOGUE.names()}

    def counters(self) -> dict[str, float]:
        self._started()
        return {"database_bytes": _size(self._file), "wal_bytes": _size(self._file.with_name(self._file.name + "-wal"))}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {}

    def endpoint(self) -> Endpoint:
        return Endpoint("sqlite", str(self._file), {"pragmas": write_json(self._pragmas(self._settings or {}))})

    def healthy(self) -> bool:
        if self._settings is None:
            return False
        try:
            with self._connection(self._settings) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except TargetError:
            return False
        return True

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def describe(self) -> Mapping[str, str]:
        place = filesystem(self._folder)
        return {"data": f"{self._file} on {place}", "started": "embedded: the load driver's workers open the file"}

    def _started(self) -> dict[str, SettingValue]:
        if self._settings is None:
            raise TargetError("SQLite was asked before it was started", remedy="Call start first.")
        return self._settings

    def _pragmas(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        return {
            name: settings[name]
            for name in CATALOGUE.names()
            if name in settings
            and name not in IN_THE_FILE
            and not (name == "journal_mode" and settings[name] in PERSISTENT_JOURNAL_MODES)
        }

    @contextmanager
    def _connection(self, settings: Mapping[str, SettingValue]) -> Iterator[sqlite3.Connection]:
        if not self._folder.is_dir():
            raise TargetError(f"The folder of the SQLite database is gone: {self._folder}", remedy="Call create first.")
        try:
            with rights_of(self._owner), closing(sqlite3.connect(self._file, isolation_level=None)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise TargetError(
                f"SQLite refused: {error} ({self._file}, {dict(settings) or 'default settings'})",
                remedy="End every other process that has the file open, and check that the disk is not full.",
            ) from error

    def _expect(self, connection: sqlite3.Connection, name: str, wanted: SettingValue) -> None:
        kept = _ask(connection, name)
        if kept != wanted:
            raise TargetError(
                f"SQLite keeps {name} = {kept}; {wanted} was requested",
                remedy="End every other process that has the file open.",
            )


def _ask(connection: sqlite3.Connection, name: str) -> SettingValue:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    # mmap_size answers nothing where SQLite was built without memory mapping
    value: SettingValue = 0 if row is None else row[0]
    if name in NUMBERED and isinstance(value, int):
        return NUMBERED[name][value]
    return value.upper() if isinstance(value, str) else value


def _size(path: Path) -> float:
    try:
        return float(path.stat().st_size)
    except FileNotFoundError:
        return 0.0


KINDS = (
    KindOfTarget(
        SqliteTarget.kind,
        SqliteTarget,
        CATALOGUE,
        CATALOGUE.check,
        lambda: [Requirement("sqlite", "SQLite", sqlite3.sqlite_version, "part of Python")],
        embedded=SqliteTarget.embedded,
        tunables=TUNABLES,
        file=SettingsFile("tuned.sql", "PRAGMA {name} = {value};"),
    ),
)
