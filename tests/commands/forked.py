"""loadframe commands that are forked from a process which has imported everything (forking.py), and how they ended."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NUMBERS = itertools.count()
"""Of the commands."""


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


@contextmanager
def commands(environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Takes commands, and forks a process for each: it does not spend a second on importing everything again."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("forking.py"))],
        env={**os.environ, "NO_COLOR": "1", **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield server
        assert server.stdin is not None
        server.stdin.close()


def forked(
    forking: subprocess.Popen[str],
    arguments: Sequence[str],
    *,
    said: str,
    environment: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
    **surroundings: Any,
) -> Result:
    """A command in a process of its own. The answer to one for which a test did not wait to the end is passed over."""
    assert forking.stdin is not None and forking.stdout is not None
    everything = {**os.environ, "NO_COLOR": "1", **(environment or {})}
    kept = {name: value for name, value in everything.items() if name not in without}
    files = [Path(said) / name for name in ("out", "err")]
    for file in files:
        file.write_text("")
    number = next(NUMBERS)
    asked = {"number": number, "arguments": arguments, "said": said, "environment": kept, **surroundings}
    assert forking.poll() is None, f"what forks commands has ended with {forking.poll()}; stderr says why"
    print(json.dumps(asked), file=forking.stdin, flush=True)
    answers = (line.split() for line in forking.stdout)
    code = next((int(code) for answered, code in answers if int(answered) == number), None)
    assert code is not None, f"what forks commands has ended with {forking.wait()}; stderr says why"
    return Result(code, *(file.read_text() for file in files))
