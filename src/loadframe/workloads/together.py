"""Worker processes that begin at one instant: each says "ready", and reads when to start."""

import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.host.signals import told
from loadframe.workloads import arrivals, step_files
from loadframe.workloads.driving import LOOK_EVERY_S, STOPPED_REMEDY, ProcessDriver, last_lines

READY_WITHIN_S = 60.0
START_AFTER_S = 0.05


@dataclass(frozen=True, slots=True)
class Worker:
    """command: prints "ready" and reads the instant of the start (CLOCK_MONOTONIC, s) from its standard input. log: its
    request log. printed: its standard error. pass_fds: descriptors that stay open in it."""

    command: Sequence[str]
    log: Path
    printed: Path
    environment: Mapping[str, str] | None = None
    pass_fds: tuple[int, ...] = ()


def start_together(
    name: str,
    workers: Sequence[Worker],
    allowance: Allowance,
    duration_s: float | None,
    *,
    once_ready: Callable[[], object] = lambda: None,
    one_each: bool = False,
) -> ProcessDriver:
    """duration_s: None if they end when their work is done. once_ready: called before they begin. one_each: see
    ProcessDriver. WorkloadError if one ends first or takes too long."""
    logs, printed = [worker.log for worker in workers], [worker.printed for worker in workers]
    for log in logs:
        log.unlink(missing_ok=True)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for worker in workers:
            with step_files.create(worker.printed, US) as stderr:
                process = spawn(
                    worker.command,
                    allowance,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    cwd=worker.log.parent,
                    env=worker.environment,
                    pass_fds=worker.pass_fds,
                )
            processes.append(process)
        _await_ready(name, processes, printed)
        once_ready()
        start_s = arrivals.instant_s(START_AFTER_S)
        for process in processes:
            assert process.stdin is not None
            # The driver reports a worker that died between "ready" and now, with the worker's own words.
            with suppress(BrokenPipeError):
                process.stdin.write(f"{start_s!r}\n".encode())
                process.stdin.close()
    except BaseException:
        ProcessDriver(name, processes, logs=logs, printed=printed, end_s=None).kill()
        raise
    end_s = None if duration_s is None else start_s + duration_s
    asked_s = duration_s if one_each else None
    return ProcessDriver(
        name, processes, logs=logs, printed=printed, end_s=end_s, duration_s=asked_s, one_each=one_each
    )  # fmt: skip


def _await_ready(name: str, processes: Sequence[subprocess.Popen[bytes]], printed: Sequence[Path]) -> None:
    until = time.monotonic() + READY_WITHIN_S
    for process, output in zip(processes, printed, strict=True):
        assert process.stdout is not None
        said = select.poll()  # select cannot handle descriptors above 1,023
        said.register(process.stdout, select.POLLIN)
        while not said.poll(1000 * max(0.0, min(LOOK_EVERY_S, until - time.monotonic()))):
            if why := told([process.pid]):
                raise WorkloadError(f"A worker of {name} does not begin: {why}.", remedy=STOPPED_REMEDY)
            if time.monotonic() >= until:
                raise WorkloadError(
                    f"Only some of {len(processes)} workers of {name} were ready after {READY_WITHIN_S:.0f} s.",
                    remedy="The machine may be too small for this many; try a lower level.",
                )
        if process.stdout.readline() != b"ready\n":
            process.wait()
            raise WorkloadError(
                f"A worker of {name} could not start (process {process.pid}, exit {process.returncode}).",
                remedy="What it printed is below.",
                details="\n".join(last_lines(output)),
            )
        process.stdout.close()
