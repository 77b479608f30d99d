"""Commands as a user runs them: real processes of the installed program, with their own folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
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

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> dict[str, Any]:
        lines = self.out.splitlines()
        assert len(lines) == 1, "one JSON object, nothing else, on stdout"
        document: dict[str, Any] = json.loads(lines[0])
        return document


Command = Callable[..., Result]


@pytest.fixture
def loadframe(tmp_path: Path) -> Command:
    """Run `loadframe ARGUMENTS` in a folder of the test's own; environment by keyword."""

    def run(*arguments: str, **environment: str) -> Result:
        done = subprocess.run(
            [LOADFRAME, *arguments],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1", **environment},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        return Result(done)

    return run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study on SQLite."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path
