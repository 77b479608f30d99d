"""What the tests of several hosts have in common."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from workers import begun


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that users of services and drivers may enter, which they cannot with pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run `loadframe tune`, or another verb, in a folder; what still runs is ended."""
    processes: list[subprocess.Popen[str]] = []

    def start(folder: Path, *more: str, verb: str = "tune") -> subprocess.Popen[str]:
        processes.append(begun(folder, verb, *more))
        return processes[-1]

    yield start
    for each in processes:
        each.kill()
        each.communicate()
