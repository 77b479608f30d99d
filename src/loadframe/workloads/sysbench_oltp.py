"""sysbench: sysbench's own OLTP scripts as they are installed (targets: mariadb, mysql, postgres; axes: threads, rate =
transactions/s). A transaction is one event of the script; sysbench_oltp.lua runs the script and logs each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.host.environment import python_package
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import databases, postgres, sysbench
from loadframe.workloads.base import KindOfWorkload, demand
from loadframe.workloads.common import AtRate
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.options import choice, rules, whole
from loadframe.workloads.sysbench import SCRIPTS, BySysbench, checked, installed, requirements, run_script

MOST_THREADS = 4096
MOST_PREPARING = 4
"""Threads that fill tables in parallel, each its own."""
CHANGES_SIZE = frozenset({"bulk_insert", "oltp_delete", "oltp_insert"})
"""Scripts that change the number of rows: their tables are made again for each step."""
STORAGE_ENGINE = "mysql-storage-engine"


@dataclass(frozen=True)
class SysbenchOptions:
    script: str = choice("oltp_read_write", SCRIPTS, "the script; all its options and sysbench's own are accepted too")
    connections: int = whole(32, 1, MOST_THREADS, "axis rate: connections that serve the offered load")


class Sysbench(databases.InOwnSchema, BySysbench[SysbenchOptions]):
    """Options: SysbenchOptions, and whatever the script of the installed sysbench has."""

    kind = "sysbench"
    target_kinds = databases.KINDS
    axes = frozenset({"threads"})
    axis_unit = "threads"
    operations: tuple[str, ...] = ("transaction",)
    model = SysbenchOptions
    levels = (1, MOST_THREADS)

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        ours = {field.name for field in fields(SysbenchOptions)}
        super().__init__({name: value for name, value in options.items() if name in ours}, allowance)
        self._given = checked(self.options.script, {name: value for name, value in options.items() if name not in ours})
        if self.options.script.startswith("select_random") and self._given.get("tables", "1") != "1":
            raise StudyError(
                f"workload.options.tables = {self._given['tables']}: sysbench's {self.options.script} has one table.",
                remedy="Omit it, or choose another script.",
            )

    def install(self, endpoint: Endpoint) -> None:
        demand((*requirements(self.kind), python_package(self.kind, *databases.engine_of(endpoint).PACKAGE)))
        databases.make_schema(endpoint)
        if self.options.script not in CHANGES_SIZE:
            self._prepare(endpoint, threads=MOST_PREPARING)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        threads = self.clients(self.check_level(level))
        databases.await_drivers_gone(endpoint, self.words_of(level))
        if self.options.script in CHANGES_SIZE:
            databases.make_schema(endpoint)
            self._prepare(endpoint, threads=threads if self.options.script == "bulk_insert" else MOST_PREPARING)

    def _prepare(self, endpoint: Endpoint, *, threads: int) -> None:
        script = installed(self.options.script).script
        sysbench.prove(endpoint, self.allowance)
        options: sysbench.Options = {"threads": threads, **self._given}
        engine = endpoint.options.get("storage_engine")
        if engine is not None and STORAGE_ENGINE in installed(self.options.script).options:
            options = {STORAGE_ENGINE: engine, **options}  # scripts that name an engine at all name InnoDB by default
        run_script(script, "prepare", endpoint, self.allowance, options)
        if endpoint.kind == "postgres":
            with postgres.connected(endpoint, "to look at the new tables") as connection:
                tables = databases.tables(connection, endpoint)  # otherwise autovacuum analyses them during a step
                schema = databases.name_of(endpoint)
                postgres.execute(connection, [f"VACUUM ANALYZE {schema}.{name}" for name in sorted(tables)])

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        level = self.check_level(level)
        sysbench.prove(endpoint, self.allowance)
        # The server's errors that end a request but not its client, in addition to sysbench's own list.
        errors = endpoint.options.get("request_errors")
        ignored = {} if errors is None else {"mysql-ignore-errors": f"1213,1020,1205,{errors}"}
        return self.start_script(
            "sysbench_oltp.lua",
            endpoint,
            folder,
            duration_s,
            threads=self.clients(level),
            rate=self.rate(level),
            options={**self._given, **ignored, "seconds": repr(float(duration_s))},
            environment={"LOADFRAME_SCRIPT": str(installed(self.options.script).script)},
        )


class SysbenchAtRate(AtRate, Sysbench):
    axis_unit = "transactions/s"


KIND = KindOfWorkload(
    Sysbench.kind, Sysbench, rules(SysbenchOptions), requirements, other_axes={"rate": SysbenchAtRate}
)
