"""The place of one cell of faults.py: folders of its own, a command under test, and what became of all that it made."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadframe.cages.groups import hierarchies
from loadframe.cli.about import EXIT_CODES
from loadframe.errors import Fault, UserError
from loadframe.host import shared_memory
from loadframe.host.identity import children, identify, parent_of
from loadframe.model import Step
from loadframe.runs.folder import RunFolder

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PLACES = ("state", "scratch", "runs")
LOADFRAME = (str(Path(sys.executable).with_name("loadframe")),)
FORKS = "loadframe.workloads.fork_server"
POLL_S = 0.01
FALL = re.compile(r"died \(|the (service|target) failed")
"""What an answer says of a target that fell: a curve among its warnings, a search and a ladder of the trial."""
DOCUMENTED = {int(code) for code in EXIT_CODES}
AFTERWARDS_S = 60.0
"""How long the command after the one that was hit may take."""
NEVER_NEGATIVE = ("_ms", ".cores", ".utilization", ".read", ".written", ".bytes")


@dataclass
class Judgement:
    """What became of one cell. said: the first line; readable: finished steps that can be read; counting: those of them
    that count; lost, stayed and wrong: in words, empty where all is well."""

    code: int | None = None
    seconds: float = 0.0
    said: str = ""
    remedy: str = ""
    finished: int = 0
    readable: int = 0
    counting: int = 0
    wrong: list[str] = field(default_factory=list)
    output: str = ""


class Scene:
    """Where one command is hit by one fault. Enter it before use; whatever was started in it has ended afterwards.

    prefix: words before the command, with which it is put into a namespace, under a limit, as another user.
    environment: what it is given besides ours. limit_s: how long the command may take.
    """

    def __init__(self, folder: Path, limit_s: float) -> None:
        self.folder, self.limit_s = folder, limit_s
        self.prefix: list[str] = []
        self.environment: dict[str, str] = {}
        self.stack = ExitStack()
        self.server: Any = None
        """Somebody's server, for studies that attach to one; owned: as it is restarted."""
        self.owned: Any = None
        self.site: Any = None
        self.network: Any = None
        self.clock: Any = None
        self.other: Any = None
        self.recorded: Any = None
        self.server_pid: int | None = None
        """Of a service that runs already."""
        self.leases: set[str] = set()
        self.segments: set[int] = set()
        self.late: list[str] = []
        self.finished = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._own: set[int] = set()
        self._mounts: set[str] = set()
        for place in PLACES:
            self.place(place).mkdir(mode=0o755)

    def __enter__(self) -> Scene:
        _adopt_orphans(True)  # so that no process gets out of our sight
        return self

    def __exit__(self, *_error: object) -> None:
        for pid in self.left():
            _signal(pid, signal.SIGKILL)
        self.stack.close()
        _adopt_orphans(False)

    def place(self, name: str) -> Path:
        return self.folder / name

    # --- the command ---

    def spare(self) -> None:
        """What runs and is mounted now is the scene's own: it is no leftover of the command."""
        self._own = set(descendants(os.getpid()))
        self._mounts = _mounts(self.folder)

    def start(self, arguments: Iterable[str]) -> None:
        """The command under test."""
        self.process = self.command(arguments, self.prefix, self.environment, "said")

    def command(
        self, arguments: Iterable[str], prefix: Iterable[str], environment: Mapping[str, str], name: str
    ) -> subprocess.Popen[bytes]:
        """A command of ours; what it prints is in NAME.out and NAME.err."""
        places = {f"LOADFRAME_{place.upper()}": str(self.place(place)) for place in ("state", "scratch")}
        home = {"HOME": str(self.folder), "XDG_STATE_HOME": "", "PYTHONFAULTHANDLER": "1"}
        out, err = (self.folder / f"{name}.{end}" for end in ("out", "err"))
        with out.open("wb") as printed, err.open("wb") as complained:
            return subprocess.Popen(
                [*prefix, *LOADFRAME, *arguments],
                cwd=self.folder,
                env={**os.environ, **home, **places, **environment},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                start_new_session=True,
            )

    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def ask_where(self) -> None:
        """It hangs: what it says of it stands in what it has said (faulthandler)."""
        assert self.process is not None
        for pid in self.all():
            if "loadframe" in command_of(pid).partition(" ")[2].partition(" ")[0]:
                _signal(pid, signal.SIGABRT)
        until = time.monotonic() + 2.0
        while not self.ended() and time.monotonic() < until:
            time.sleep(POLL_S)

    def watch(self) -> None:
        """Note how many steps have been finished, and which leases there were."""
        self.leases |= {path.stem for path in self.place("state").glob("leases/*.json")}
        self.segments |= set(filter(None, map(_segment, self.place("scratch").glob("*/*/data/postmaster.pid"))))
        self.late += self.unwritten()
        self.finished = max(self.finished, sum(_whole_lines(path) for path in self.place("runs").glob("*/steps.jsonl")))

    def await_end(self, until: float) -> bool:
        while not self.ended():
            self.watch()
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        self.watch()
        return True

    def await_step(self, until: float, *, running: bool) -> bool:
        """Until a step is finished, and where running is asked for, the next one has a driver."""
        while not self.ended() and time.monotonic() < until:
            self.watch()
            if self.finished and (not running or self.drivers()):
                return True
            time.sleep(POLL_S)
        return False

    # --- who is who ---

    def all(self) -> list[int]:
        """The command and all that it has started."""
        assert self.process is not None
        return [self.process.pid, *descendants(self.process.pid)]

    def servers(self) -> list[int]:
        """The processes of the servers that the command has started, or of somebody's that it is attached to."""
        if self.server is not None:
            first = int((self.server.folder / "pid").read_text())
            return [first, *descendants(first)]
        found = [each["pid"] for record in self.records() for each in record["processes"]]
        return [pid for first in found for pid in (first, *descendants(first)) if state_of(pid) not in "ZX"]

    def recorders(self) -> list[int]:
        return [pid for pid in self.all() if "loadframe.recording.recorder" in command_of(pid)]

    def drivers(self) -> list[int]:
        """What the command has started besides: load drivers, and what prepares for them."""
        if self.process is None:
            return []
        started = descendants(self.process.pid)
        known = {*self.servers(), *self.recorders()}  # after it: a server starts processes at any moment
        found = [pid for pid in started if pid not in known]
        programs = [pid for pid in found if f"{self.place('scratch')}" in cwd_of(pid)]
        workers = [pid for pid in found if FORKS in command_of(pid) and FORKS in command_of(parent_of(pid) or 0)]
        return [pid for pid in (*programs, *workers) if "launch.py" not in command_of(pid)]

    def records(self) -> list[dict[str, Any]]:
        """The leases that there are now."""
        found = []
        for path in self.place("state").glob("leases/*.json"):
            try:
                found.append(json.loads(path.read_text()))
            except (OSError, ValueError):
                continue
        return found

    def left(self) -> list[int]:
        """Processes that the command has started, and that are there."""
        return [pid for pid in descendants(os.getpid()) if pid not in self._own]

    def bury(self) -> None:
        """Take note of the end of orphans that we have adopted: PostgreSQL takes a zombie for one that runs."""
        for pid in children(os.getpid()):
            if identify(pid) is None and (self.process is None or pid != self.process.pid):
                os.waitpid(pid, 0)

    # --- what became of it ---

    def stayed(self) -> list[str]:
        """What is there, in words, of all that the command has made outside its run folder."""
        found = [f"process {pid} ({command_of(pid)[:60]})" for pid in self.left()]
        found += [f"{path}" for path in self.place("scratch").iterdir()]
        found += [f"{path}" for part in ("leases", "changes") for path in self.place("state").glob(f"{part}/*.json")]
        found += [f"{path}" for path in self.place("runs").rglob("*.part")]
        for lease in self.leases:
            found += [str(path) for path in Path("/dev/shm").glob(f"loadframe{lease}*")]
            found += [str(path) for each in hierarchies() for path in each.top.rglob(f"loadframe-{lease}*")]
        segments = shared_memory.segments(shared_memory.SEGMENTS)
        found += [f"shared memory {each.id} of a PostgreSQL" for each in segments if each.id in self.segments]
        found += [f"mount {path}" for path in _mounts(self.folder) - self._mounts]
        if self.server is not None:
            found += [f"schema {name}" for name in self.server.schemas() if name.startswith("loadframe")]
        return found

    def unwritten(self) -> list[str]:
        """Runs of which more steps have raw requests than a line: a line is written before the next step begins."""
        found = []
        for path in self.place("runs").glob("*/run.json"):
            raw = len(list(path.parent.glob("raw/requests-*.zst")))
            if raw > _whole_lines(path.parent / "steps.jsonl") + 1:
                found.append(f"{raw} steps have raw requests, and {_whole_lines(path.parent / 'steps.jsonl')} a line")
        return found

    def judge(self, *, codes: frozenset[int], timely: bool, blinds: str = "", falls: bool = False) -> Judgement:
        """What became of the command, once the fault is over. blinds: the counter that no step may go by. falls: an
        answer with numbers has to say that the target fell."""
        assert self.process is not None
        code = self.process.returncode
        out, err = ((self.folder / f"said.{end}").read_text(errors="replace") for end in ("out", "err"))
        judged = Judgement(code=code, finished=self.finished, output=err[-12000:] + out[-4000:])
        if not timely:
            judged.wrong.append(f"it did not end within {self.limit_s:.0f} s")
        elif code not in codes:
            judged.wrong.append(f"it ended with {code}")
        if traces := [word for word in ("Traceback", "Exception ignored", "panicked at", "core dumped") if word in err]:
            judged.wrong.append(f"it said {traces[0]!r}")
        if self.server is not None and self.server.password in out + err:
            judged.wrong.append("it told the password")
        judged.wrong += self.late[:1]
        self._judge_words(judged, out, err, falls=falls)
        self._judge_steps(judged, blinds)
        return judged

    def _judge_words(self, judged: Judgement, out: str, err: str, *, falls: bool) -> None:
        if judged.code is not None and judged.code < 0:
            return  # killed
        judged.said = next(iter(reversed(err.strip().splitlines())), "")
        try:
            answer = json.loads(out) if out.strip() else None
        except ValueError:
            judged.wrong.append(f"what it printed is no JSON: {out[:80]!r}")
            return
        failed = answer is not None and str(answer.get("schema")).startswith("loadframe.error/")
        if failed and answer["kind"] == Fault.__name__:
            judged.wrong.append(f"it was a fault of its own: {answer['message'].splitlines()[0]}")
        if judged.code == 0:
            if answer is None or failed:
                judged.wrong.append(f"it ended with 0 and {'said that it failed' if failed else 'printed no answer'}")
            elif falls and not FALL.search(out):
                judged.wrong.append("it ended with 0 and did not say that the target fell")
            return
        if answer is None or "message" not in answer:
            if judged.code in DOCUMENTED:
                judged.wrong.append("it did not say what is wrong")
            return
        judged.said, judged.remedy = answer["message"].splitlines()[0], answer["remedy"]
        if not judged.remedy and judged.code != 130:
            judged.wrong.append("it did not say what to do")

    def _judge_steps(self, judged: Judgement, blinds: str) -> None:
        steps: list[Step] = []
        for path in self.place("runs").glob("*/run.json"):
            try:
                steps += RunFolder.open(path.parent).steps()
            except UserError as error:
                judged.wrong.append(f"the run folder cannot be read: {error.fact}")
        judged.readable, judged.counting = len(steps), sum(step.counts for step in steps)
        if judged.readable < judged.finished:
            judged.wrong.append(f"of {judged.finished} finished steps {judged.readable} can be read")
        for step in steps:
            judged.wrong += [f"step {step.number}: {words}" for words in nonsense(step)]
            if blinds and blinds not in {one.counter for one in step.blind}:
                judged.wrong.append(f"step {step.number} goes by {blinds}, which does not count")

    def afterwards(self, judged: Judgement, *, tidy: bool) -> None:
        """Whether anything stayed after the command, and what of it after one more. tidy: the fault has not kept the
        command from putting everything away itself, where it was not killed."""
        waited = time.monotonic() + 2.0  # an orphan that is being ended may take a moment
        while self.left() and time.monotonic() < waited:
            time.sleep(POLL_S)
        at_once = self.stayed()
        all_of_it = tidy and judged.code in DOCUMENTED
        judged.wrong += [f"stayed: {words}" for words in at_once if all_of_it or words.startswith("process")]
        runs = sorted(path.parent for path in self.place("runs").glob("*/run.json"))
        if runs and judged.readable:
            self._next(judged, "report", str(runs[-1]))
        if not judged.readable or list(self.place("state").glob("changes/*.json")):
            self._next(judged, "changes", "revert")
        judged.wrong += [f"stayed after the next command: {words}" for words in self.stayed()]

    def _next(self, judged: Judgement, *following: str) -> None:
        """One more command, which has to do what it says."""
        process = self.command([*following, "--json"], (), {}, "next")
        try:
            code = process.wait(AFTERWARDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            judged.wrong.append(f"the next command ({following[0]}) did not end within {AFTERWARDS_S:.0f} s")
            return
        said = (self.folder / "next.err").read_text(errors="replace")
        if code not in (0, 1) or "Traceback" in said or (code == 1 and judged.counting > 1):
            judged.wrong.append(f"the next command ({following[0]}) ended with {code}: {said.strip()[-200:]}")


def _segment(pid_file: Path) -> int | None:
    """The System V segment of a PostgreSQL; None where it has none yet, or none any more."""
    try:
        return shared_memory.named_segment(pid_file.read_bytes())
    except OSError:
        return None


def _adopt_orphans(wanted: bool) -> None:
    """Whether processes below us whose parent has ended become our children (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def nonsense(step: Step) -> list[str]:
    """What cannot be of a step, in words: times and counts that run backwards."""
    found = []
    if not step.started_s <= step.window_start_s < step.window_end_s <= step.ended_s + 1e-6:
        found.append(f"its window {step.window_start_s:.3f} to {step.window_end_s:.3f} s is not within "
                     f"{step.started_s:.3f} to {step.ended_s:.3f} s")  # fmt: skip
    found += [f"{name} is {value:g}" for name, value in step.metrics.items() if not math.isfinite(value)]
    rates = {name: value for name, value in step.metrics.items() if name.endswith(NEVER_NEGATIVE)}
    rates |= {"throughput": step.throughput, "latency": step.latency.p50_ms}
    return found + [f"{name} is {value:g}" for name, value in rates.items() if value < 0]


def descendants(pid: int) -> list[int]:
    """All processes that come from this one and have not ended."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := parent_of(int(folder.name))) is not None:
            parents.setdefault(parent, []).append(int(folder.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = parents.get(waiting.pop(), [])
        waiting += more
        found += more
    return [each for each in found if state_of(each) not in "ZX"]


def state_of(pid: int) -> str:
    """One letter, "X" for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def cwd_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


def send(pids: Iterable[int], number: signal.Signals) -> int:
    """Send a signal to each that is there; to how many."""
    return sum(_signal(pid, number) for pid in pids)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _whole_lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _mounts(folder: Path) -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line.split()[4] for line in lines if line.split()[4].startswith(str(folder))}
