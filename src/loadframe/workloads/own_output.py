"""A driver that Loadframe did not write: what it printed is bounded while it runs and read at its end, and what is
wrong with it is said. Processes that it starts are recorded and ended with it."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.errors import WorkloadError
from loadframe.formats.said import words
from loadframe.host.identity import end_all, identify, marked
from loadframe.workloads import step_files
from loadframe.workloads.command_lines import LineError
from loadframe.workloads.command_output import Output
from loadframe.workloads.driver_clock import ClockError, Instant, Life
from loadframe.workloads.driving import GRACE_S, TAIL_LINES, ProcessDriver
from loadframe.workloads.request_log import Requests

MOST_OUTPUT_BYTES = 1 << 30
"""Of one step: ten million lines for requests."""
MOST_PRINTED_BYTES = 64 << 20
TAIL_BYTES = 64 << 10
SHORT_SHARE, SHORT_S, SHORTEST_SHARE = 0.1, 0.25, 0.25
"""No more than this may be missing of its time: a tenth; of short steps a quarter of a second, or a quarter."""
MOST_PROCESSES = 512
STEP_MARK = "LOADFRAME_STEP"
"""In the environment of a driver, and so of all that it starts: a word that no other step has."""
CONTRACT = "docs/driving-with-a-command.md says what is expected of a driver."


@dataclass(eq=False, kw_only=True)
class OutputDriver(ProcessDriver):
    """read: what it printed, given its Life and whether it was `cut_off`. bounds: the most bytes of each file that it
    writes. duration_s: for how long it should work, from its first request on. open_loop: whether its requests begin
    when they should. mark: what STEP_MARK is in its environment. address: of the target, as it was told. late_s: how
    long it may go on with what it has begun when its time is up."""

    read: Callable[..., Output]
    bounds: Mapping[Path, int]
    duration_s: float
    open_loop: bool
    mark: str
    address: str
    late_s: float = 0.0
    started: Instant = field(default_factory=Instant.now)
    _ended: Instant | None = field(default=None, init=False)
    _flooded: str = field(default="", init=False)
    _overdue: bool = field(default=False, init=False)
    _output: Output | None = field(default=None, init=False)

    def pids(self) -> tuple[int, ...]:
        """The processes that have not ended, and those that they have started."""
        return tuple(dict.fromkeys(each for pid in super().pids() for each in family(pid)))

    def running(self) -> bool:
        """Whether load is still made. One that prints without an end is ended here."""
        for path, most in self.bounds.items():
            if not self._flooded and step_files.size(path) > most:
                self._flooded = f"it wrote more than {most >> 20} MiB into {path.name}"
                self.kill()
        self._overdue = self._overdue or (
            self.end_s is not None and time.monotonic() > self.end_s + GRACE_S and bool(super().pids())
        )
        running = super().running()
        if not running and self._ended is None:
            self._ended = Instant.now()
        return running

    def waiting(self) -> int:
        """Not known while it runs: what it printed is read at its end."""
        return 0

    def offered(self, start_s: float, end_s: float) -> int | None:
        """See ProcessDriver: those that it tells of, done or not."""
        if not self.open_loop:
            return None
        requests = self._read()
        begin_s = requests.end_s - requests.latency_ms / 1000.0
        return int(((begin_s > start_s) & (begin_s <= end_s)).sum())

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        output = self._printed_output()
        if output.moved_bytes is None:
            return None
        ends_s = output.requests.end_s
        return int(output.moved_bytes[(ends_s > start_s) & (ends_s <= end_s)].sum())

    @property
    def marks(self) -> tuple[str, ...]:
        """Flags of a step that was measured by what it printed."""
        return self._printed_output().marks

    def requests(self) -> Requests:
        """See ProcessDriver. WorkloadError also where what it printed cannot be what it did."""
        if not self.running() and self._failed is None:
            if self._flooded:
                raise self._failure(f"The driver {self.name} was ended: {self._flooded}.", "Let it print less.")
            if not self._stopped:
                self._check(self._read())
        return super().requests()

    def kill(self) -> None:
        """End it at once, with all that it started, also what has left its group."""
        started = [process for pid in self.pids() if (process := identify(pid)) is not None]
        super().kill()
        # A process that is just becoming another program shows no environment; one that has left its parent no parent.
        end_all([*started, *marked(f"{STEP_MARK}={self.mark}")], 0.0)
        self._ended = self._ended or Instant.now()

    def _read(self) -> Requests:
        return self._printed_output().requests

    def _printed_output(self) -> Output:
        if self._output is None:
            life = Life(self.started, self._ended or Instant.now())
            try:
                self._output = self.read(life, cut_off=self._killed or self._overdue)
            except LineError as error:
                raise self._failure(f"The driver {self.name} printed what Loadframe cannot read: {error}.") from None
            except ClockError as error:
                raise self._failure(f"The driver {self.name} has another clock: {error}.") from None
        return self._output

    def _check(self, requests: Requests) -> None:
        """WorkloadError where it did nothing, failed at everything, ended early, or did not end."""
        if not len(requests):
            if self._killed and not self._overdue:
                return
            planned_s = (self.end_s or self.started.monotonic_s) - self.started.monotonic_s
            late = f" within {GRACE_S + planned_s:.3g} s, and did not end" if self._overdue else ""
            raise self._failure(f"The driver {self.name} told of no request{late}.")
        errors = self._printed_output().errors
        if not (requests.outcome == 0).any() and errors and not self._killed:
            raise self._failure(
                f"All {len(requests):,} requests of the driver {self.name} failed: {'; '.join(errors)}."
            )
        begun_s = float((requests.end_s - requests.latency_ms / 1000.0).min())
        lasted_s = float(requests.end_s[-1]) - begun_s
        if self._overdue and lasted_s > self.duration_s + self.late_s + GRACE_S / 2:
            raise self._failure(
                f"The driver {self.name} did not end: it went on for {lasted_s:.3g} s, and a step has "
                f"{self.duration_s:.3g} s (LOADFRAME_DURATION_S)."
            )
        longest_s = float(requests.latency_ms.max()) / 1000.0
        short_s = min(SHORT_S, SHORTEST_SHARE * self.duration_s)
        # The last of its requests may have taken as long as the longest before.
        missing_s = max(SHORT_SHARE * self.duration_s, short_s, 2 * longest_s)
        if not self._killed and lasted_s < self.duration_s - missing_s:
            raise self._failure(
                f"The driver {self.name} ended early: {lasted_s:.3g} s lie between its first request and its last, and "
                f"a step has {self.duration_s:.3g} s (LOADFRAME_DURATION_S)."
            )

    def _complained(self) -> bool:
        return any("FATAL" in line for path in self.printed for line in last_lines(path))

    def _failure(self, fact: str, remedy: str = CONTRACT) -> WorkloadError:
        said = [line for path in self.printed for line in last_lines(path)]
        return WorkloadError(
            fact,
            remedy=f"{remedy} The end of what it printed is below." if said else f"{remedy} It printed nothing else.",
            details="\n".join([f"(the target: {self.address})", *said]),
        )


def last_lines(path: Path, count: int = TAIL_LINES) -> list[str]:
    """The last lines of a file of any length, as printable text, each once."""
    file = step_files.opened(path)
    if file is None:
        return []
    with file:
        file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        lines = file.read(TAIL_BYTES).decode("utf-8", "replace").splitlines()
    return list(dict.fromkeys(words(line) for line in lines if line.strip()))[-count:]


def family(pid: int) -> list[int]:
    """A process and all that descend from it, the first MOST_PROCESSES (proc(5), task/[tid]/children)."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < MOST_PROCESSES:
        each = waiting.pop(0)
        found.append(each)
        with suppress(OSError):  # it has ended meanwhile
            for task in Path(f"/proc/{each}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii", errors="replace").split())
    return found
