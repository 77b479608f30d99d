"""Short transactions on a few large tables, by sysbench's oltp.lua."""

from dataclasses import asdict, dataclass
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.host.environment import python_package
from loadframe.model import Endpoint
from loadframe.workloads import databases
from loadframe.workloads.base import demand
from loadframe.workloads.common import AtRate, registration
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.mariadb import ENGINES, MARIADB_ALONE
from loadframe.workloads.options import choice, mix_of, whole
from loadframe.workloads.sysbench import OURS, BySysbench, requirements

MOST_THREADS = 4096
MIX = ("read", "update", "transfer")
"""Operations in the order of the request log, as in oltp.lua."""
_OF_MYSQL = (
    "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, state INT NOT NULL,"
    " payload VARBINARY({payload_bytes}) NOT NULL) ENGINE = {engine}"
)
TABLE = {
    "mariadb": (
        _OF_MYSQL,
        "INSERT INTO {table} SELECT seq, 0, REPEAT('x', {payload_bytes}) FROM {schema}.seq_1_to_{rows}",
    ),
    "mysql": (
        _OF_MYSQL,
        "SET SESSION cte_max_recursion_depth = {rows}",
        "INSERT INTO {table} WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
        " WHERE n < {rows}) SELECT n, 0, REPEAT('x', {payload_bytes}) FROM numbers",
    ),
    "postgres": (
        "CREATE TABLE {table} (id INT PRIMARY KEY, state INT NOT NULL, payload VARCHAR({payload_bytes}) NOT NULL)"
        " WITH (fillfactor = 80)",
        "INSERT INTO {table} SELECT n, 0, REPEAT('x', {payload_bytes}) FROM generate_series(1, {rows}) n",
        "VACUUM ANALYZE {table}",
    ),
}
"""How a table is made. PostgreSQL writes a changed row next to the old one: with room in its page, pages and indexes
stay as they are (HOT updates), and a table does not grow from step to step."""


@dataclass(frozen=True)
class OltpOptions:
    tables: int = whole(4, 1, 1000, "number of tables")
    rows: int = whole(10_000, 1, 100_000_000, "rows in each table")
    payload_bytes: int = whole(200, 1, 60_000, "payload of each row in bytes")
    engine: str = choice("InnoDB", ENGINES, "storage engine of the tables, in MariaDB and MySQL")
    hot_rows: int = whole(
        0, 0, 100_000_000, "number of rows of a table among which updates and transfers choose; 0: all"
    )
    read: int = whole(8, 0, 1_000_000, "weight of read in the mix of requests")
    update: int = whole(1, 0, 1_000_000, "weight of update in the mix of requests")
    transfer: int = whole(1, 0, 1_000_000, "weight of transfer in the mix of requests")
    threads: int = whole(32, 1, MOST_THREADS, "axis rate: connections that serve the offered load")


class Oltp(databases.InOwnSchema, BySysbench[OltpOptions]):
    kind = "oltp"
    target_kinds = databases.KINDS
    axes = frozenset({"concurrency"})
    axis_unit = "threads"
    operations: tuple[str, ...] = MIX
    model = OltpOptions
    levels = (1, MOST_THREADS)

    def set_up(self) -> None:
        self._mix = mix_of(self.options, MIX)
        if self.options.hot_rows > self.options.rows:
            raise StudyError(
                f"workload.options.hot_rows = {self.options.hot_rows} of {self.options.rows} rows is impossible.",
                remedy="Give at most as many hot_rows as rows.",
            )

    def install(self, endpoint: Endpoint) -> None:
        """StudyError for an engine that the target does not have."""
        engine, options, schema = databases.engine_of(endpoint), self.options, databases.name_of(endpoint)
        demand((*requirements(self.kind), python_package(self.kind, *engine.PACKAGE)))
        if endpoint.kind == "postgres" and options.engine != OltpOptions.engine:
            raise StudyError(
                f"workload.options.engine = {options.engine!r}: PostgreSQL has no storage engines", remedy="Omit it."
            )
        if endpoint.kind == "mysql" and options.engine == MARIADB_ALONE:
            raise StudyError(
                f"workload.options.engine = {options.engine!r}: MySQL does not have this storage engine",
                remedy="Omit it, or choose another one.",
            )
        with engine.anywhere(endpoint, "to make the tables") as connection:
            databases.make_schema_over(connection, endpoint)
            for number in range(1, options.tables + 1):
                given = {"schema": schema, "table": f"{schema}.oltp_{number}", **asdict(options)}
                engine.execute(connection, [statement.format(**given) for statement in TABLE[endpoint.kind]])

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        databases.await_drivers_gone(endpoint, self.words_of(self.check_level(level)))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        level = self.check_level(level)
        own = ("tables", "rows", "hot_rows", "payload_bytes")
        return self.start_script(
            "oltp.lua",
            endpoint,
            folder,
            duration_s,
            threads=self.clients(level),
            rate=self.rate(level),
            options={
                **OURS,
                **{name: getattr(self.options, name) for name in own},
                "schema": databases.name_of(endpoint),
                "seconds": repr(float(duration_s)),
                **self._mix,
            },
        )


class OltpAtRate(AtRate, Oltp):
    served_by = "threads"


KIND = registration(Oltp, requirements, other_axes={"rate": OltpAtRate})
