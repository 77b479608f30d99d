"""oltp: short transactions on a few large tables (targets: mariadb, postgres; axes: concurrency = threads, rate =
requests/s).

Each thread has a connection. read fetches one row by its key, update writes one row again, transfer changes two rows in
one transaction. Rows are chosen evenly; with hot_rows, updates and transfers choose among few. sysbench runs oltp.lua:
on the axis concurrency in a closed loop, where a request begins when the one before has ended; on the axis rate in an
open loop, where requests begin when they should and `threads` connections serve them, first come, first served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import databases, mariadb, postgres, sysbench
from loadframe.workloads.at_rate import AtRate
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.mariadb import ENGINES
from loadframe.workloads.options import choice, mix_of, read_options, rules, whole, whole_level
from loadframe.workloads.requirements import demand, program, python_package
from loadframe.workloads.sysbench import OURS, start_script

MOST_THREADS = 4096
"""Requests/s: beyond, a driver of one process is the bottleneck long before the server."""
MIX = ("read", "update", "transfer")
"""The operations in the order of the request log; oltp.lua counts them in the same order."""


@dataclass(frozen=True)
class OltpOptions:
    tables: int = whole(4, 1, 1000, "number of tables")
    rows: int = whole(10_000, 1, 100_000_000, "rows in each table")
    payload_bytes: int = whole(200, 1, 60_000, "payload of each row in bytes")
    engine: str = choice("InnoDB", ENGINES, "storage engine of the tables, in MariaDB")
    hot_rows: int = whole(
        0, 0, 100_000_000, "number of rows of a table among which updates and transfers choose; 0: all"
    )
    read: int = whole(8, 0, 1_000_000, "weight of read in the mix of requests")
    update: int = whole(1, 0, 1_000_000, "weight of update in the mix of requests")
    transfer: int = whole(1, 0, 1_000_000, "weight of transfer in the mix of requests")
    threads: int = whole(32, 1, MOST_THREADS, "axis rate: connections that serve the offered load")


FILL_PERCENT = 80
"""PostgreSQL writes a changed row beside the old one: with room in its page, pages and indexes stay what they are (HOT
updates), and a table does not grow from step to step."""


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs whatever the target; the Python package for the target's kind is the target's requirement too."""
    return (program(kind, "sysbench", "sysbench"),)


class Oltp(databases.InOwnSchema):
    """The workload. Options: OltpOptions."""

    kind = "oltp"
    target_kinds = frozenset({"mariadb", "postgres"})
    axes = frozenset({"concurrency"})
    axis_unit = "threads"
    operations: tuple[str, ...] = MIX
    judged = operations
    one_lock = False
    runs_to_completion = False

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.options = read_options(OltpOptions, self.kind, options)
        self._mix = mix_of(self.options, MIX)
        if self.options.hot_rows > self.options.rows:
            raise StudyError(
                f"workload.options.hot_rows = {self.options.hot_rows} of {self.options.rows} rows is impossible.",
                remedy="Give at most as many hot_rows as rows.",
            )

    def check_level(self, level: float) -> int:
        """The level as a whole number. StudyError where it cannot be one of the axis."""
        return whole_level(self.kind, "concurrency", level, 1, MOST_THREADS)

    def describe_axis(self, level: float) -> str:
        return f"{level:g} thread" + ("" if level == 1 else "s")

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return sysbench.trials()

    def install(self, endpoint: Endpoint) -> None:
        """Make the schema with all its rows; what was there before is dropped. StudyError for an engine that the target
        does not have."""
        if endpoint.kind == "postgres":
            self._install_in_postgres(endpoint)
        else:
            self._install_in_mariadb(endpoint)

    def _install_in_mariadb(self, endpoint: Endpoint) -> None:
        demand((*requirements(self.kind), python_package(self.kind, "pymysql", "mariadb")))
        options = self.options
        columns = (
            f"id INT NOT NULL PRIMARY KEY, state INT NOT NULL, payload VARBINARY({options.payload_bytes}) NOT NULL"
        )
        with mariadb.connected(endpoint, "to make the tables", schema=False) as connection:
            mariadb.make_schema(connection, endpoint)
            for number in range(1, options.tables + 1):
                # The Sequence engine is part of the server.
                rows = f"SELECT seq, 0, REPEAT('x', {options.payload_bytes}) FROM seq_1_to_{options.rows}"
                mariadb.execute(
                    connection,
                    [
                        f"CREATE TABLE oltp_{number} ({columns}) ENGINE = {options.engine}",
                        f"INSERT INTO oltp_{number} {rows}",
                    ],
                )

    def _install_in_postgres(self, endpoint: Endpoint) -> None:
        demand((*requirements(self.kind), python_package(self.kind, "psycopg", "postgres")))
        options = self.options
        if options.engine != OltpOptions.engine:
            raise StudyError(
                f"workload.options.engine = {options.engine!r}: PostgreSQL has no storage engines",
                remedy="Omit it.",
            )
        columns = f"id INT PRIMARY KEY, state INT NOT NULL, payload VARCHAR({options.payload_bytes}) NOT NULL"
        statements = []
        for number in range(1, options.tables + 1):
            rows = f"SELECT n, 0, REPEAT('x', {options.payload_bytes}) FROM generate_series(1, {options.rows}) n"
            statements += [
                f"CREATE TABLE oltp_{number} ({columns}) WITH (fillfactor = {FILL_PERCENT})",
                f"INSERT INTO oltp_{number} {rows}",
                f"VACUUM ANALYZE oltp_{number}",
            ]
        with postgres.connected(endpoint, "to make the tables") as connection:
            postgres.make_schema(connection, endpoint)
            postgres.execute(connection, statements)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Nothing but waiting for the last driver to be gone: there are always the same rows."""
        databases.await_drivers_gone(endpoint, self.describe_axis(self.check_level(level)))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start sysbench; its threads work for duration_s from the moment each is connected."""
        return self._start(endpoint, folder, duration_s, threads=self.check_level(level))

    def _start(
        self, endpoint: Endpoint, folder: Path, duration_s: float, *, threads: int, rate: float | None = None
    ) -> ProcessDriver:
        demand(requirements(self.kind))
        return start_script(
            self.kind,
            "oltp.lua",
            endpoint,
            allowance=self.allowance,
            threads=threads,
            rate=rate,
            folder=folder,
            duration_s=duration_s,
            options={
                **OURS,
                "tables": self.options.tables,
                "rows": self.options.rows,
                "hot_rows": self.options.hot_rows,
                "payload_bytes": self.options.payload_bytes,
                "seconds": repr(float(duration_s)),
                **self._mix,
            },
        )


class OltpAtRate(AtRate, Oltp):
    """The same requests at a given rate: see AtRate."""

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start sysbench; requests arrive for duration_s. What has not begun by then is not asked any more."""
        rate = self.check_level(level)
        return self._start(endpoint, folder, duration_s, threads=self.options.threads, rate=rate)


KIND = KindOfWorkload(Oltp.kind, Oltp, rules(OltpOptions), requirements, other_axes={"rate": OltpAtRate})
