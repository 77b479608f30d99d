"""Where the console script begins: signals are in order before anything heavy is imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from loadframe.cage.signals import STOPPING, ignore


def main() -> None:
    """Run the command line. The first Ctrl-C, SIGTERM or hang-up stops the command, which then reverts and reports;
    further ones are ignored, so that this is not interrupted in turn."""
    for number in STOPPING:
        signal.signal(number, _stop)
    try:
        from loadframe.cli.main import app

        app()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr, flush=True)
        # Not sys.exit: modules that were half imported would be torn down with tracebacks of their own.
        os._exit(130)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in STOPPING:
        signal.signal(number, ignore)
    raise KeyboardInterrupt
