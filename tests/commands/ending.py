"""The end of what a test has started, where it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def ended_where_it_fails() -> Iterator[None]:
    """What is started in the block is killed where that fails. The traceback holds it until some later test, which it
    would fail: a process that is let go while it runs, or a pipe that is open, is a warning."""
    begun: list[subprocess.Popen[Any]] = []
    begin = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        begun.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", noted)
        try:
            yield
        except BaseException:
            for process in begun:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()
            raise
