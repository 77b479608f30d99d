"""sysbench's own OLTP scripts as they are installed. A transaction is one event of the script; sysbench.lua runs the
script and logs each of them. Which options there are is in their own help."""

import functools
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.formats.said import did_you_mean
from loadframe.host.environment import NO_FOLDER, environment, located, python_package
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import databases, postgres, sysbench
from loadframe.workloads.base import demand
from loadframe.workloads.common import AtRate, registration
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.options import choice, whole
from loadframe.workloads.sysbench import BySysbench, Options, requirements

SCRIPTS = (
    "bulk_insert", "oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write",
    "oltp_update_index", "oltp_update_non_index", "oltp_write_only", "select_random_points", "select_random_ranges",
)  # fmt: skip
MOST_THREADS = 4096
MOST_PREPARING = 4
"""Threads that fill tables in parallel, each its own."""
CHANGES_SIZE = frozenset({"bulk_insert", "oltp_delete", "oltp_insert"})
"""Scripts that change the number of rows: their tables are made again for each step."""
STORAGE_ENGINE = "mysql-storage-engine"
SCRIPT, PROOF = (Path(__file__).with_name(f"{name}.lua") for name in ("sysbench", "proof"))


@dataclass(frozen=True)
class SysbenchOptions:
    script: str = choice("oltp_read_write", SCRIPTS, "the script; all its options and sysbench's own are accepted too")
    connections: int = whole(32, 1, MOST_THREADS, "axis rate: connections that serve the offered load")


class Sysbench(databases.InOwnSchema, BySysbench[SysbenchOptions]):
    """Its options are also those of the script."""

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

    @staticmethod
    def trials() -> tuple[tuple[str, ...], ...]:
        return (*sysbench.trials(), ("cat", str(SCRIPT), str(PROOF)))

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
        prove(endpoint, self.allowance)
        options: Options = {"threads": threads, **self._given}
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
        prove(endpoint, self.allowance)
        # The server's errors that end a request but not its client, in addition to sysbench's own list.
        errors = endpoint.options.get("request_errors")
        ignored = {} if errors is None else {"mysql-ignore-errors": f"1213,1020,1205,{errors}"}
        return self.start_script(
            SCRIPT,
            endpoint,
            folder,
            duration_s,
            threads=self.clients(level),
            rate=self.rate(level),
            options={**self._given, **ignored, "seconds": repr(float(duration_s))},
            environment={
                "LOADFRAME_SCRIPT": str(installed(self.options.script).script),
                "LOADFRAME_LUA": str(sysbench.FOLDER / "sysbench.lua"),
            },
        )


class SysbenchAtRate(AtRate, Sysbench):
    axis_unit = "transactions/s"


KIND = registration(Sysbench, requirements, other_axes={"rate": SysbenchAtRate})


def run_script(script: Path, what: str, endpoint: Endpoint, allowance: Allowance, options: Options) -> None:
    """what: a command of it ("prepare"). TargetError, with what it printed."""
    if (said := sysbench.said(script, what, endpoint, allowance, options)) is not None:
        raise TargetError(
            f"sysbench {script.stem} {what} failed.",
            remedy="If disk space or memory ran out, give it fewer or smaller tables.",
            details=said,
        )


def prove(endpoint: Endpoint, allowance: Allowance) -> None:
    """WorkloadError if sysbench's own scripts, which name no schema, would find others' tables."""
    if endpoint.attached:
        options: Options = {"proof": databases.proof(endpoint), "servers": len(endpoint.fronts) or 1}
        if (said := sysbench.said(PROOF, "prove", endpoint, allowance, options)) is not None:
            raise databases.elsewhere(endpoint, "sysbench", said)


LEVEL = "the levels of [load] are it: the axis threads, or the axis rate with the option connections"
STEP = "a step ends by [measure] window"
SERVER = "the target decides it"
LOG = "every request is logged, and the quantiles are taken from there"
RESERVED: Mapping[str, str] = {
    "threads": LEVEL, "num-threads": LEVEL, "rate": LEVEL, "tx-rate": LEVEL,
    "time": STEP, "max-time": STEP, "events": STEP, "max-requests": STEP, "forced-shutdown": STEP, "warmup-time": STEP,
    "db-driver": SERVER, "config-file": SERVER,
    **{f"mysql-{name}": SERVER for name in ("host", "port", "socket", "user", "password", "db")},
    **{f"pgsql-{name}": SERVER for name in ("host", "port", "user", "password", "db")},
    "host": SERVER, "port": SERVER, "socket": SERVER, "user": SERVER, "password": SERVER, "db": SERVER,
    "percentile": LOG, "histogram": LOG, "report-interval": LOG, "report-checkpoints": LOG,
    "mysql-dry-run": "nothing would be measured",
    **dict.fromkeys(("help", "version", "verbosity", "debug", "db-debug", "mysql-debug"), "it changes what is printed"),
}  # fmt: skip
LINE = re.compile(r"^\s+--([\w-]+)(\[=on\|off\]|=\S+)?\s")
SWITCH, NUMBER = "[=on|off]", "=N"


@dataclass(frozen=True, slots=True)
class Installed:
    """options: name, with dashes -> the form of its value ("=N", "[=on|off]", "=STRING")."""

    script: Path
    options: Mapping[str, str]


def read_help(text: str) -> dict[str, str]:
    """Options, in the form of Installed.options, from what sysbench prints for --help or "help"."""
    matches = (LINE.match(line) for line in text.splitlines())
    return {_dashed(match[1]): match[2] or "" for match in matches if match}


@functools.cache
def installed(script: str) -> Installed:
    """MissingTool without sysbench or without the script."""
    folder = sysbench.scripts()
    path = folder / f"{script}.lua" if folder is not None else None
    if path is None or not path.exists():
        raise MissingTool(
            f"sysbench's {script} is not installed: {path or 'there is no sysbench on PATH'}.",
            remedy="Install it: sudo apt-get install sysbench",
        )
    general = _printed("--help") | ({} if script == "bulk_insert" else _printed(str(path), "help"))
    return Installed(path, general)


def checked(script: str, options: Mapping[str, SettingValue]) -> dict[str, str]:
    """The options by names with dashes. StudyError for a wrong or reserved one, MissingTool without sysbench."""
    values: dict[str, str] = {}
    for given, value in options.items():
        name = _dashed(given)
        if (why := RESERVED.get(name)) is not None:
            raise StudyError(
                f"workload.options.{given} = {value!r}: Loadframe sets this option of sysbench itself.",
                remedy=f"Omit it of [workload.options], which has script and connections: {why}.",
            )
        known = installed(script).options
        if name not in known:
            offered = sorted(option for option in known if option not in RESERVED)
            raise StudyError(
                f"sysbench's {script} has no option {given!r} (value {value!r}).",
                remedy=f"{did_you_mean(name, offered)}Its options are: {', '.join(offered)}.",
            )
        values[name] = _value(given, value, known[name])
    return values


def _value(name: str, value: SettingValue, form: str) -> str:
    if form == SWITCH:
        right, accepted = "true or false", isinstance(value, bool) or value in ("on", "off")
    elif form == NUMBER:
        right = "a number from 0"
        accepted = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    else:
        right, accepted = "text in one line", not isinstance(value, bool) and "\n" not in str(value)
    if not accepted:
        raise StudyError(
            f"workload.options.{name} = {value!r} is not a value of this sysbench option.",
            remedy=f"It must be {right}.",
        )
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _dashed(name: str) -> str:
    """sysbench treats dashes and underscores alike."""
    return name.replace("_", "-")


def _printed(*arguments: str) -> dict[str, str]:
    said = subprocess.run(
        [located("sysbench") or "sysbench", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=NO_FOLDER,
        env={**environment(), **sysbench.search_paths()},
        encoding="utf-8",
        errors="replace",
    )
    return read_help(said.stdout)
