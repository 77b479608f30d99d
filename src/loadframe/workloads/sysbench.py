"""sysbench as a driver of Lua scripts, with the password visible to no one. In an open loop its own queue is not used:
a script cannot see in it when a request should have begun (arrivals.py)."""

import functools
import itertools
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.environment import NO_FOLDER, environment, located
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import databases, step_files
from loadframe.workloads.arrivals import ARRIVALS, await_ready, let_begin
from loadframe.workloads.base import demand, program
from loadframe.workloads.common import Common
from loadframe.workloads.common import Options as ModelOptions
from loadframe.workloads.driving import ProcessDriver, run_to_end
from loadframe.workloads.options import did_you_mean

Options = Mapping[str, str | int | float]
FOLDER = Path(__file__).parent
OURS: Options = {"db-ps-mode": "disable", "mysql-ignore-errors": "1213,1020,1205,1146"}
"""For our own scripts. After these errors they retry: sysbench's own list (deadlock, row changed, lock wait), and a
table that is gone because another client completed its job. For PostgreSQL its list is fixed."""
START_UP_S = 1.0
SCRIPTS = (
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
)  # fmt: skip
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


def requirements(kind: str) -> tuple[Requirement, ...]:
    """The target's kind requires its own Python package."""
    return (program(kind, "sysbench", "sysbench"),)


def trials() -> tuple[tuple[str, ...], ...]:
    scripts = map(str, sorted(FOLDER.glob("*.lua")))
    return (("test", "-x", located("sysbench") or "sysbench"), ("cat", *scripts))


class BySysbench(Common[ModelOptions]):
    trials = staticmethod(trials)

    def start_script(
        self,
        script: str,
        endpoint: Endpoint,
        folder: Path,
        duration_s: float | None,
        *,
        threads: int,
        options: Options,
        rate: float | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> ProcessDriver:
        """options: its own and sysbench's. Each thread writes `requests-N.log` into `folder`. The script ends itself;
        duration_s decides when it is overdue (None: never). rate: requests/s; needs duration_s."""
        demand(requirements(self.kind))
        folder = folder.resolve()
        logs = [folder / f"requests-{thread}.log" for thread in range(threads)]
        for log in logs:
            log.unlink(missing_ok=True)
        # The script does all timing, counting and statistics: sysbench only runs the threads.
        given = {"threads": threads, "time": 0, "events": 0, "percentile": 0, **options, "folder": str(folder)}
        printed = folder / "sysbench.txt"
        arrivals = None
        with ExitStack() as files:
            account = files.enter_context(_account(endpoint))
            output, schedule = files.enter_context(step_files.create(printed, US)), None
            if rate is not None:
                to_come = files.enter_context(step_files.create(folder / ARRIVALS, US))
                schedule = files.enter_context((folder / ARRIVALS).open("rb", buffering=0))
                given["open_loop"] = 1
            process = spawn(
                _command(FOLDER / script, "run", endpoint, account, given),
                self.allowance,
                stdin=schedule,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**_environment(endpoint), **environment},
                pass_fds=(account,),
            )
            if rate is not None and duration_s is not None:
                await_ready(process, logs)
                arrivals, _ = let_begin(to_come, rate, duration_s, threads)
        end_s = None if duration_s is None else time.monotonic() + START_UP_S + duration_s
        return ProcessDriver(
            self.kind, [process], logs=logs, printed=[printed], end_s=end_s, arrivals=arrivals, duration_s=duration_s,
            one_each=rate is None,
        )  # fmt: skip


def run_script(script: Path, what: str, endpoint: Endpoint, allowance: Allowance, options: Options) -> None:
    """A command of a script ("prepare"). TargetError, with what it printed, if it fails."""
    if (said := _said(script, what, endpoint, allowance, options)) is not None:
        raise TargetError(
            f"sysbench {script.stem} {what} failed.",
            remedy="If disk space or memory ran out, give it fewer or smaller tables.",
            details=said,
        )


def prove(endpoint: Endpoint, allowance: Allowance) -> None:
    """WorkloadError if sysbench's own scripts, which name no schema, would find others' tables."""
    if endpoint.attached:
        options: Options = {"proof": databases.proof(endpoint), "servers": len(endpoint.fronts) or 1}
        if (said := _said(FOLDER / "proof.lua", "prove", endpoint, allowance, options)) is not None:
            raise databases.elsewhere(endpoint, "sysbench", said)


def _said(script: Path, what: str, endpoint: Endpoint, allowance: Allowance, options: Options) -> str | None:
    with _account(endpoint) as account:
        command = _command(script, what, endpoint, account, options)
        return run_to_end(command, _environment(endpoint), allowance, pass_fds=(account,))


def _command(script: Path, what: str, endpoint: Endpoint, account: int, options: Options) -> list[str]:
    driver = databases.engine_of(endpoint).SYSBENCH
    command = [located("sysbench") or "sysbench", f"--config-file=/dev/fd/{account}", str(script)]
    return [*command, f"--db-driver={driver}", *(f"--{name}={value}" for name, value in options.items()), what]


def _environment(endpoint: Endpoint) -> dict[str, str]:
    return {**databases.engine_of(endpoint).environment(endpoint), **search_paths()}


def _shared_out(endpoint: Endpoint) -> dict[str, str]:
    """Lists, of which sysbench takes the next for each connection: all ports of each host. StudyError otherwise."""
    of_fronts = [databases.engine_of(front).parameters(front) for front in endpoint.fronts]
    if not of_fronts:
        return {}
    if all("socket" in parameters for parameters in of_fronts):
        return {"socket": ",".join(parameters["socket"] for parameters in of_fronts)}
    pairs = [(parameters.get("host", ""), parameters.get("port", "")) for parameters in of_fronts]
    hosts, ports = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
    if set(itertools.product(hosts, ports)) != set(pairs):
        raise StudyError(
            "sysbench cannot share its connections out over these servers: it goes through all ports of each host, "
            "and through sockets only where all have one.",
            remedy="Name servers of one host, or servers that listen on the same port.",
        )
    return {"host": ",".join(hosts), "port": ",".join(ports)}


@contextmanager
def _account(endpoint: Endpoint) -> Iterator[int]:
    """A descriptor of a file in memory: any user can read argv. StudyError for what cannot stand in it."""
    engine = databases.engine_of(endpoint)
    given: dict[str, str] = {**engine.parameters(endpoint), **_shared_out(endpoint)}
    lines = {f"{engine.SYSBENCH}-{'db' if name == 'dbname' else name}": value for name, value in given.items()}
    for name, value in lines.items():
        if "\n" in value or value != value.strip():
            raise StudyError(
                f"sysbench cannot be given a {name} that has a line break or blanks at its ends.",
                remedy="Use another user or password for the load.",
            )
    text = "".join(f"{name}={value}\n" for name, value in lines.items() if value)
    with step_files.in_memory(text.encode()) as file:
        yield file


@dataclass(frozen=True, slots=True)
class Installed:
    """options: name, with dashes -> the form of its value ("=N", "[=on|off]", "=STRING")."""

    script: Path
    options: Mapping[str, str]


def read_help(text: str) -> dict[str, str]:
    """As Installed.options, from what sysbench prints for --help or "help"."""
    matches = (LINE.match(line) for line in text.splitlines())
    return {_dashed(match[1]): match[2] or "" for match in matches if match}


@functools.cache
def installed(script: str) -> Installed:
    """MissingTool without sysbench or without the script."""
    folder = _scripts()
    path = folder / f"{script}.lua" if folder is not None else None
    if path is None or not path.exists():
        raise MissingTool(
            f"sysbench's {script} is not installed: {path or 'there is no sysbench on PATH'}.",
            remedy="Install it: sudo apt-get install sysbench",
        )
    general = _printed("--help") | ({} if script == "bulk_insert" else _printed(str(path), "help"))
    return Installed(path, general)


def search_paths() -> dict[str, str]:
    """sysbench's scripts load others by name from their own folder rather than the working folder."""
    folder = _scripts()
    return {} if folder is None else {"LUA_PATH": f"{folder}/?.lua"}


def _scripts() -> Path | None:
    program = located("sysbench")
    return Path(program).resolve().parents[1] / "share" / "sysbench" if program else None


def checked(script: str, options: Mapping[str, SettingValue]) -> dict[str, str]:
    """By names with dashes. StudyError for a wrong or reserved one, MissingTool."""
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
        env={**environment(), **search_paths()},
        encoding="utf-8",
        errors="replace",
    )
    return read_help(said.stdout)
