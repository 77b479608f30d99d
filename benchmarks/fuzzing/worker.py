"""One process that carries out inputs one after the other, and says of each how it ended."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import os
import random
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from fuzzing import confined, corpus, surfaces
from fuzzing.surfaces import Input, Surface
from loadframe.cli.about import EXIT_CODES
from loadframe.errors import UserError

DOCUMENTED = {int(code) for code in EXIT_CODES}
ANSWERED = (0, 3, 4)
LONGEST_SAID = 20_000
"""Characters of a message: whatever is longer, somebody has put his input into it."""
FAULT = "Loadframe has a bug"
"""What a command says of an exception that it did not foresee: a traceback in words is one all the same."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PARENT_DEATH = 1
MEMORY_BYTES = 1 << 30
FAILURES = ("traceback", "hang", "exit", "answer")


@dataclass(frozen=True, slots=True)
class Ended:
    """failure: one of FAILURES, "" for none. what: in words, for a failure; the same words for the same fault."""

    failure: str
    what: str
    accepted: bool
    seconds: float
    peak_bytes: int


def work(order: dict[str, Any]) -> None:
    """Carry out an order: `folder` to work in, `items` of (surface, seed), `share` of inputs that a process of
    its own carries out, `also`: a file with more SURFACES. A line of JSON on stdout before each, and one after it."""
    folder = Path(order["folder"])
    is_confined = bool(order["confine"]) and confined.confine(folder)
    if is_confined:
        child = os.fork()
        if child:
            _end_like(child)
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL)
        confined.first_of_its_own()
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    if order.get("also"):
        surfaces.SURFACES.update(runpy.run_path(order["also"])["SURFACES"])
    given = corpus.load()
    _import_all()
    for name, seed in order["items"]:
        surface = surfaces.SURFACES[name]
        if surface.confined and not is_confined:
            print(json.dumps({"skipped": name}), file=stream)
            continue
        print(json.dumps({"began": [name, seed]}), file=stream)
        ended = carry_out(name, seed, folder / "input", given, share=order["share"], keep=order["keep"])
        print(json.dumps({"ended": [name, seed], **asdict(ended)}), file=stream)


def _end_like(child: int) -> None:
    os.close(1)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 255)


def _import_all() -> None:
    """What commands import on first use, so that no input pays for it."""
    import typer.main
    import vl_convert  # noqa: F401

    from loadframe import lab  # noqa: F401
    from loadframe.cli import main  # noqa: F401

    typer.main.get_command = functools.cache(typer.main.get_command)  # it is built for each call, in 40 ms


def carry_out(
    name: str, seed: int, folder: Path, given: corpus.Corpus, *, share: float = 0.0, keep: bool = False
) -> Ended:
    """One input of a surface, made from its seed in a new folder."""
    rng = random.Random(f"{name} {seed}")
    surface = surfaces.SURFACES[name]
    if surface.confined and not confined.is_confined():
        raise RuntimeError(f"{name} is for a process that is confined")
    _remove(folder)
    folder.mkdir()
    made = surface.make(rng, folder, given)
    _forget_peak()
    before = time.monotonic()
    with _in_folder(folder, surface):
        if made.call is not None:
            failure, what, accepted = _called(made, folder)
        elif random.Random(seed).random() < share:
            failure, what, accepted = _judged(made, *_of_its_own(made, folder))
        else:
            failure, what, accepted = _judged(made, *_within(made, folder))
    seconds, peak = time.monotonic() - before, _peak_bytes()
    if peak > MEMORY_BYTES and not failure:
        failure, what = "answer", f"{peak >> 20} MiB of memory"
    if failure and keep:
        print(f"{made.arguments} in {folder}", file=sys.stderr)
    elif not keep:
        _remove(folder)
    return Ended(failure, what, accepted, seconds, peak)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _in_folder(folder: Path, surface: Surface) -> Iterator[None]:
    """Working in it, with state and temporary data of its own."""
    own = {"LOADFRAME_STATE": str(folder / "state"), "LOADFRAME_SCRATCH": str(folder), "HOME": str(folder)}
    before = dict(os.environ)
    os.environ.update({**own, "NO_COLOR": "1", **surface.environment})
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir("/")
        os.environ.clear()
        os.environ.update(before)


def _called(made: Input, folder: Path) -> tuple[str, str, bool]:
    assert made.call is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made.call(folder)
    except UserError as error:
        return ("", "", False) if str(error).strip() else ("answer", "an error without words", False)
    except Exception as error:  # noqa: BLE001 - that is what is counted
        return "traceback", _place_of(error), False
    return "", "", True


def _within(made: Input, folder: Path) -> tuple[int, str, str, BaseException | None]:
    """The command, in this process, as the console script carries it out: exit status, what it said, what it raised."""
    from loadframe.cli import entry

    (folder / "stdin").write_bytes(made.stdin)
    with _redirected(folder) as ended:
        sys.argv = ["loadframe", *made.arguments]
        try:
            entry.main()
        except _Left as left:
            ended.code = left.code
        except SystemExit as end:
            ended.code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException as error:  # noqa: BLE001 - that is what is counted
            ended.raised = error
    return ended.code, ended.out, ended.err, ended.raised


class _Left(BaseException):
    """os._exit, which would end the worker."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _leave(code: int) -> NoReturn:
    raise _Left(code)


@dataclass
class _Command:
    code: int = 0
    out: str = ""
    err: str = ""
    raised: BaseException | None = None


@contextlib.contextmanager
def _redirected(folder: Path) -> Iterator[_Command]:
    """The three standard streams are files; signals, streams and threads are as before afterwards."""
    ended = _Command()
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    kept, streams = [os.dup(number) for number in (0, 1, 2)], (sys.stdin, sys.stdout, sys.stderr)
    for number, (name, flags) in enumerate(
        (("stdin", os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT), ("err", os.O_WRONLY | os.O_CREAT))
    ):
        opened = os.open(folder / name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout, sys.stderr = _writing(1, "strict"), _writing(2, "backslashreplace")
    leave, hook, mask = os._exit, sys.unraisablehook, os.umask(0o022)
    os._exit = _leave  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            yield ended
    finally:
        os._exit = leave  # type: ignore[assignment]
        sys.unraisablehook = hook
        os.umask(mask)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for number, handler in signals.items():
            signal.signal(number, handler)
        ended.out, ended.err = (
            (folder / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err")
        )  # fmt: skip


def _writing(number: int, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding="utf-8", errors=errors, line_buffering=True
    )


def _of_its_own(made: Input, folder: Path) -> tuple[int, str, str, BaseException | None]:
    """The installed command, in a process of its own."""
    arguments = [os.fsencode(word) for word in made.arguments]
    with contextlib.suppress(OSError):
        ended = subprocess.run([corpus.LOADFRAME, *arguments], input=made.stdin, capture_output=True, check=False)
        out, err = ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
        return ended.returncode, out, err, None
    return _within(made, folder)


def _judged(made: Input, code: int, out: str, err: str, raised: BaseException | None) -> tuple[str, str, bool]:
    """Failure, what it was in words, and whether the input was accepted."""
    accepted = code in ANSWERED and raised is None
    if raised is not None:
        return "traceback", _place_of(raised), False
    if "Traceback (most recent call last)" in err:
        return "traceback", " | ".join(err.strip().splitlines()[-4:])[-300:], False
    if FAULT in err:
        return "traceback", err.partition(FAULT)[2].partition("\n")[0][:200], False
    if warning := re.search(r"^.*?([\w/.]+\.py):(\d+): (\w*Warning: .*)$", err, re.M):
        return "traceback", f"{warning[1].rpartition('site-packages/')[2]}:{warning[2]} {warning[3]}", accepted
    if code not in DOCUMENTED:
        return "exit", f"exit status {code}", accepted
    if wrong := _unanswered(made, code, out, err):
        return "answer", wrong, accepted
    return "", "", accepted


def _unanswered(made: Input, code: int, out: str, err: str) -> str:
    """What is wrong with what was said, in words; "" for nothing."""
    if len(err) > LONGEST_SAID:
        return "a message of more than 20,000 characters"
    if bad := CONTROLS.search(err):
        return f"U+{ord(bad[0]):04X} in a message"
    if code == 1 and not err.strip() and not out.strip():
        return "exit 1 without a word"
    if "--json" not in made.arguments or code == 2:
        return "" if code not in ANSWERED or out.strip() else "no answer"
    return _json_wrong(made, code, out)


def _json_wrong(made: Input, code: int, out: str) -> str:
    lines = out.split("\n")
    if len(lines) != 2 or lines[1]:
        return f"{len(lines) - 1} lines of JSON"
    try:
        answer = json.loads(out)
    except ValueError as error:
        return f"no JSON: {error}"
    schema = answer.get("schema") if isinstance(answer, dict) else None
    if not isinstance(schema, str) or not re.fullmatch(r"loadframe\.[a-z-]+/\d+", schema):
        return f"schema {schema!r}"
    if not surfaces.finite(answer):
        return "a number that is not finite"
    if code == 1 and schema == "loadframe.error/1":
        return "" if answer["message"].strip() else "an error without words"
    if code in ANSWERED and schema == "loadframe.error/1":
        return f"an error with exit {code}"
    try:
        return made.check(answer) if made.check is not None else ""
    except (KeyError, TypeError, AttributeError) as error:
        return f"the answer's shape: {error!r}"
    except UserError as error:
        return f"what was answered is refused: {str(error)[:200]}"


def _place_of(error: BaseException) -> str:
    """Kind and place of an exception: the same for the same fault."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fuzzing/" not in frame.filename]
    ours = [frame for frame in frames if "/loadframe/" in frame.filename] or frames
    place = f"{ours[-1].filename.rpartition('/src/')[2]}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {place}: {str(error)[:100]!r}"


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0
