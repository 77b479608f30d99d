"""sysbench as a driver of Lua scripts. In an open loop its own queue is not used: a script cannot see in it when a
request should have begun, so the arrivals are a file (arrivals.py)."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from loadframe.errors import StudyError
from loadframe.host.environment import located
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import databases, step_files
from loadframe.workloads.arrivals import ARRIVALS, await_ready, let_begin
from loadframe.workloads.base import demand, program
from loadframe.workloads.common import Common
from loadframe.workloads.common import Options as ModelOptions
from loadframe.workloads.driving import ProcessDriver, run_to_end

Options = Mapping[str, str | int | float]
"""Values by the names of sysbench's options, or of a script's own."""
FOLDER = Path(__file__).parent
OURS: Options = {"db-ps-mode": "disable", "mysql-ignore-errors": "1213,1020,1205,1146"}
"""Options of sysbench for our own scripts. After these errors they retry: sysbench's own list (deadlock, row changed,
lock wait), and a table that is gone because another client completed its job. For PostgreSQL its list is fixed:
deadlock, unique violation and serialization failure."""
START_UP_S = 1.0
"""What sysbench may need until its threads are connected; they count their time from then on."""


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What its workloads need for any target; the target's kind requires its own Python package."""
    return (program(kind, "sysbench", "sysbench"),)


def trials() -> tuple[tuple[str, ...], ...]:
    return (("test", "-x", located("sysbench") or "sysbench"), ("cat", *map(str, sorted(FOLDER.glob("*.lua")))))


class BySysbench(Common[ModelOptions]):
    trials = staticmethod(trials)

    def start_script(
        self,
        script: str | Path,
        endpoint: Endpoint,
        folder: Path,
        duration_s: float | None,
        *,
        threads: int,
        options: Options,
        rate: float | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> ProcessDriver:
        """script: its name in this folder, or its path. options: its own and sysbench's; each thread writes
        `requests-N.log` into `folder`. duration_s only decides when it is overdue (None: never). rate: requests per
        second in an open loop, which then needs duration_s; None: a closed loop. environment: added to the script's."""
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


def said(script: Path, what: str, endpoint: Endpoint, allowance: Allowance, options: Options) -> str | None:
    """Run a command of a script ("prepare") to its end; see driving.run_to_end."""
    with _account(endpoint) as account:
        command = _command(script, what, endpoint, account, options)
        return run_to_end(command, _environment(endpoint), allowance, pass_fds=(account,))


def _command(script: Path, what: str, endpoint: Endpoint, account: int, options: Options) -> list[str]:
    given = {"db-driver": databases.engine_of(endpoint).SYSBENCH, **options}
    command = [located("sysbench") or "sysbench", f"--config-file=/dev/fd/{account}", str(script)]
    return [*command, *(f"--{name}={value}" for name, value in given.items()), what]


def _environment(endpoint: Endpoint) -> dict[str, str]:
    return {**databases.engine_of(endpoint).environment(endpoint), **search_paths()}


def _shared_out(endpoint: Endpoint) -> dict[str, str]:
    """Lists of hosts and ports, from which sysbench takes the next one for each connection. It goes through all ports
    of each host. StudyError if that is not these servers."""
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
    """The descriptor of a configuration file in memory: any user can read argv. StudyError for what cannot stand in
    it."""
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


def search_paths() -> dict[str, str]:
    """Scripts load others by name from their own folder rather than, as by default, the working folder."""
    folder = scripts()
    return {} if folder is None else {"LUA_PATH": f"{folder}/?.lua"}


def scripts() -> Path | None:
    """The folder of the scripts of the sysbench on PATH; None without one."""
    program = located("sysbench")
    return Path(program).resolve().parents[1] / "share" / "sysbench" if program else None
