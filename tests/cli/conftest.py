"""Commands as a user runs them: real processes with their own folders. That the installed program does the same is for
test_commands.test_help, test_stopped and the documentation's commands to show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))

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
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""


class Result:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> dict[str, Any]:
        lines = self.out.splitlines()
        assert len(lines) == 1, "one JSON object, nothing else, on stdout"
        document: dict[str, Any] = json.loads(lines[0])
        return document


Command = Callable[..., Result]


@pytest.fixture(scope="session")
def forking() -> Iterator[subprocess.Popen[str]]:
    """Takes commands, and forks a process for each: it does not spend a second on importing everything anew."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("forking.py"))],
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield server
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture
def loadframe(forking: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Run `loadframe ARGUMENTS` in a folder of the test's own; environment by keyword."""
    said = tmp_path_factory.mktemp("said")

    def run(*arguments: str, **environment: str) -> Result:
        assert forking.stdin is not None and forking.stdout is not None
        everything = {**os.environ, "NO_COLOR": "1", **environment}
        asked = {"arguments": arguments, "folder": str(tmp_path), "said": str(said), "environment": everything}
        print(json.dumps(asked), file=forking.stdin, flush=True)
        code = int(forking.stdout.readline())
        return Result(code, (said / "out").read_text(), (said / "err").read_text())

    return run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study on SQLite."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path
