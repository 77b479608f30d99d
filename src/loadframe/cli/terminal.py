"""All output. Much of it is foreign text: control characters are shown escaped, and nothing is markup. A stream that
takes nothing more never costs a measurement: lines on stderr are lost, and an answer on stdout is an OutputError once
everything has ended, unless its reader has left."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, TextIO, cast

from loadframe.errors import OutputError
from loadframe.formats.json_text import write_json
from loadframe.masking import masked, masked_values

STDIN, STDOUT, STDERR = 0, 1, 2
NOT_PLAIN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and line feed, the separators and directions with which a line can look different from
what it is (Unicode Technical Report 36, 2.5), and stand-ins for undecodable bytes."""


def plain(text: str) -> str:
    """Escapes all that a terminal would obey, or could not show."""
    return NOT_PLAIN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(words: object) -> None:
    """A line for people, on stderr. Never raises."""
    if sys.stderr is not None:
        try:
            print(plain(masked(str(words))), file=sys.stderr, flush=True)
        except (OSError, ValueError):  # full, or closed; the exit code reports it
            return


def answer(text: object = "", *, run: object = None) -> None:
    """Print to stdout. run: the folder that it is about. OutputError."""
    _write(plain(masked(str(text))), run)


def deliver(data: bytes) -> None:
    """Write to stdout, unchanged except on a terminal. OutputError."""
    if sys.stdout is None or sys.stdout.isatty():
        _write(plain(data.decode("utf-8", "backslashreplace")), None)
        return
    with _answering(None):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


def emit(document: dict[str, Any], *, run: object = None, with_secrets: bool = False) -> None:
    """Print a JSON object in ASCII. with_secrets: none is hidden. OutputError."""
    _Answer.begun = True
    _write(write_json(document if with_secrets else masked_values(document)), run)


def emit_error(document: dict[str, Any]) -> None:
    """Unless the command has already given its answer. Never raises."""
    if _Answer.begun:
        return
    try:
        emit({"schema": "loadframe.error/1", **document})
    except OutputError as error:
        say(str(error))


def wants_json(arguments: Sequence[str]) -> bool:
    """Even an invalid command line."""
    return "--json" in takewhile(lambda argument: argument != "--", arguments)


def begin() -> None:
    _Answer.begun = False


def answered() -> bool:
    return _Answer.begun


class _Answer:
    begun = False


def _write(text: str, run: object) -> None:
    with _answering(run):
        if sys.stdout is None:
            raise ValueError("closed")
        print(text, flush=True)


@contextmanager
def _answering(run: object) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _swallow()
    except (OSError, ValueError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        remedy = f"What was measured is kept: `loadframe report {run}` shows it." if run else "Redirect it elsewhere."
        raise OutputError(f"Cannot write the answer to standard output: {why}", remedy=remedy) from error


def _swallow() -> None:
    """The reader has left, as `head` does."""
    os.dup2(opened := os.open(os.devnull, os.O_WRONLY), STDOUT)
    os.close(opened)


class Unfailing:
    """stderr, also for libraries: what it does not take is lost, and `failed` is set."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            self.failed = True
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self.failed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare() -> None:
    """A closed standard stream is opened, or the next file would get its number: stdin is empty, stdout refuses, stderr
    swallows, also for a program that replaces ours (watch)."""
    for descriptor, mode in ((STDIN, os.O_RDONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(opened := os.open(os.devnull, mode), descriptor)
            if opened != descriptor:
                os.close(opened)
            os.set_inheritable(descriptor, True)
    if sys.stdin is None:
        sys.stdin = os.fdopen(STDIN, encoding="utf-8", errors="replace")
    for name, descriptor in (("stdout", STDOUT), ("stderr", STDERR)):
        if (stream := getattr(sys, name)) is not None:
            stream.reconfigure(errors="backslashreplace")
        else:
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace"))
    sys.stderr = cast(TextIO, Unfailing(sys.stderr))


def finished(code: int) -> int:
    """Flush both streams; the exit code is 1 where a stream failed, and all else went well."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _swallow()
    except (OSError, ValueError) as error:
        if code == 0:
            say(f"Cannot write the answer to standard output: {error}")
            code = 1
    if sys.stderr is not None:
        sys.stderr.flush()
    return 1 if code == 0 and getattr(sys.stderr, "failed", False) else code
