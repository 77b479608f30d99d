"""Commands as a user runs them: real processes with their own folders. That the installed program does the same is for
test_stopped, test_abandoned and README's first command (tests/docs) to show."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from forked import Result, forked
from loadframe.host import identity
from loadframe.host.leases import mark_of
from loadframe.host.leftovers import sweep
from loadframe.host.state import state_directory
from waiting import await_that

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
PATIENCE_S = 90.0


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For each test one of its own: what one that fails leaves there is ended, and not found by the next. Servers that
    other tests share have set another one for as long as they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
        yield
        sweep()


STUDY = """
[study]
name = "tiny"
question = "How many?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[workload.options]
backlog = 50
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""


Command = Callable[..., Result]


@pytest.fixture
def loadframe(forking: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Run `loadframe ARGUMENTS` in a folder of the test's own; environment by keyword."""
    said = tmp_path_factory.mktemp("said")

    def run(*arguments: str, **environment: str) -> Result:
        return forked(forking, arguments, folder=str(tmp_path), said=str(said), environment=environment)

    return run


@pytest.fixture
def loadframe_in(forking: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """The same in surroundings of any kind: see forking.become. without: variables that it does not have."""
    said = tmp_path_factory.mktemp("said")

    def run(*arguments: str, without: Sequence[str] = (), **surroundings: Any) -> Result:
        everything = {"folder": str(tmp_path), **surroundings, "said": str(said)}
        return forked(forking, arguments, without=without, **everything)

    return run


class Running:
    """A command in the background."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [LOADFRAME, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, steps: int, file: str) -> None:
        """Until it has a lease, and so many lines of that file of its run."""

        def done() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return bool(self.leases()) and self.finished(file) >= steps

        await_that(done, f"{steps} lines of {file}", PATIENCE_S)
        self.scratch = json.loads(self.leases()[-1].read_text())["folder"]

    def run(self) -> Path:
        """The only run folder."""
        (run,) = (self.folder / "runs").iterdir()
        return run

    def finished(self, file: str = "steps.jsonl") -> int:
        """So many lines has that file of a run."""
        files = list((self.folder / "runs").glob(f"*/{file}"))
        return files[0].read_text().count("\n") if files else 0

    def end(self, *numbers: int) -> tuple[str, str]:
        """Send it these signals, and wait for its end: what it said, on stdout and on stderr."""
        for number in numbers:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return out, err

    def leases(self) -> list[Path]:
        """Of all commands."""
        return sorted((state_directory() / "leases").glob("*.json"))

    def processes(self) -> list[int]:
        """Those whose command line names the folder of its lease, or whose environment has its mark."""
        lease = self.scratch.rpartition("loadframe-")[2]
        processes = {*identity.naming(self.scratch), *identity.marked(mark_of(lease))}
        return [process.pid for process in processes]

    def fork_server(self) -> int:
        """What the workers of its load are forked from."""
        (server,) = self._forked_by(self.process.pid)
        return server

    def workers(self) -> list[int]:
        return self._forked_by(self.fork_server())

    def _forked_by(self, parent: int) -> list[int]:
        having = identity.naming("loadframe.workloads.fork_server")
        return [process.pid for process in having if identity.parent_of(process.pid) == parent]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Run `loadframe ARGUMENTS`; answers once it has finished so many steps (lines of `file`), None: at once."""
    started: list[Running] = []

    def begin(*arguments: str, steps: int | None = 2, file: str = "steps.jsonl") -> Running:
        running = Running(tmp_path, list(arguments))
        started.append(running)
        if steps is not None:
            running.wait_for(steps, file)
        return running

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study on SQLite."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path
