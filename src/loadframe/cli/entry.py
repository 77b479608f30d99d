"""The console script: signals are handled from before anything heavy is imported until the process has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from loadframe.host.signals import STOPPING, cuts_short, ignore, no_core_dumps, tell, whole

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_S = 0.01
STOPPED_JSON = b'{"schema": "loadframe.error/1", "kind": "interrupted", "message": "Stopped.", "remedy": ""}\n'


def main() -> NoReturn:
    """The first Ctrl-C, SIGTERM or hang-up stops the command, which reverts and reports; further ones are ignored."""
    take_signals()
    no_core_dumps()
    # For numpy: each further thread takes 27 MiB, and would use a CPU during measurements.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Else polars looks into a folder of a fixed name in /var/tmp. Our tables always fit in memory.
    os.environ.setdefault("POLARS_OOC_SPILL_DIR", "/nonexistent")
    os.umask((os.umask(0o077) | 0o022) & 0o077)  # our files: never writable for others, always for us
    try:
        from loadframe.cli import terminal

        terminal.prepare()
        try:
            code = _run()
        finally:
            # The rest is over in a moment and needs no signal handling of its own.
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
        code = terminal.finished(code)
    except KeyboardInterrupt:
        code = _stopped()
    # Not sys.exit: the interpreter would remove its signal handlers first, and a second Ctrl-C would end it by that
    # signal; and half-imported modules would be torn down with tracebacks of their own.
    os._exit(code)


def take_signals() -> None:
    """A signal that ends raises KeyboardInterrupt. One that our parent ignores (nohup, a shell's &) stays ignored."""
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _unraisable


@whole
def _stop(number: int, frame: FrameType | None) -> None:
    if cuts_short(frame):
        _again(number)
        return
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, ignore)
    raise KeyboardInterrupt


def _stopped() -> int:
    """Before a verb has begun, or after it. Modules may be half imported."""
    tell("Stopped.")
    terminal = sys.modules.get("loadframe.cli.terminal")
    if "--json" in sys.argv and not getattr(terminal, "answered", bool)():
        with contextlib.suppress(OSError):
            os.write(1, STOPPED_JSON)
    return 130


def _unraisable(lost: UnraisableHookArgs) -> None:
    """Where Python cannot pass an exception on (a library's callback) it is lost; Ctrl-C is repeated a moment later."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    stopped = [number for number in STOPPING if signal.getsignal(number) == ignore]
    for number in stopped:
        signal.signal(number, _stop)
    for number in stopped[:1]:
        _again(number)


def _again(number: int) -> None:
    """The kernel's timer, not a thread's: a thread would meet the main thread always in the same calls."""

    def deliver(_alarm: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(number)
        if callable(handler):
            handler(number, frame)

    signal.signal(signal.SIGALRM, deliver)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def _run() -> int:
    from loadframe.cli import faults, terminal

    try:
        from loadframe.cli.main import run
        from loadframe.host.environment import take_own_environment

        take_own_environment()
        for number in STOPPING:  # polars' handler raises KeyboardInterrupt also where Ctrl-C is ignored, or deferred
            signal.signal(number, signal.getsignal(number))
        return run(sys.argv[1:])
    except BrokenPipeError:  # of what typer writes itself: the reader has left
        return 0
    except Exception as error:
        if faults.is_of_stop(error):
            raise KeyboardInterrupt from error
        failure = faults.in_words(error)
        terminal.say(str(failure))
        if terminal.wants_json(sys.argv[1:]):
            terminal.emit_error({"kind": type(failure).__name__, "message": str(failure), "remedy": failure.remedy})
        return 1
