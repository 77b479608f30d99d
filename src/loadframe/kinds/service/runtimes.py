"""The runtimes and frameworks of services: how each is recognised, and its knobs for how much it does at a time. Pure.
Only `loadframe init` uses it, to write the knobs into the study. No diagnosis depends on it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime, or a framework on one. words: as people call it. program: a pattern of the whole name of the program;
    of a framework, that of a program, a script or a module in its command line."""

    id: str
    words: str
    program: str


RUNTIMES = (
    Runtime("python", "Python", r"python[0-9.]*|pypy[0-9.]*"),
    Runtime("node", "Node.js", r"node|nodejs|node-MainThread"),
    Runtime("java", "Java", r"java"),
    Runtime("ruby", "Ruby", r"ruby[0-9.]*"),
    Runtime("php", "PHP", r"php(-fpm)?[0-9.]*"),
    Runtime("dotnet", ".NET", r"dotnet"),
    Runtime("erlang", "Erlang or Elixir", r"beam\.smp"),
    Runtime("deno", "Deno", r"deno"),
    Runtime("bun", "Bun", r"bun"),
)
"""Recognised by the program's name. A Go program is recognised by what its linker writes into it."""
GO = Runtime("go", "Go", "")
NATIVE = Runtime("native", "a compiled program", "")
SCRIPT = Runtime("script", "a script", "")


FRAMEWORKS = (
    Runtime("gunicorn", "gunicorn", r"gunicorn"),
    Runtime("uvicorn", "uvicorn", r"uvicorn"),
    Runtime("hypercorn", "hypercorn", r"hypercorn"),
    Runtime("waitress", "waitress", r"waitress(-serve)?"),
    Runtime("uwsgi", "uWSGI", r"uwsgi(-core)?"),
    Runtime("puma", "puma", r"puma"),
)


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting of a runtime or framework (of: its id) that decides how much is done at a time, or with how much
    memory. flags: of the command line, the one to write first; empty for a variable. variable: of the environment; ""
    for a flag. glued: its value follows the flag without a blank (-Xmx64m). default: in effect where it is not given,
    None where that depends. source: where flag and default were read."""

    of: str
    setting: str
    meaning: str
    source: str
    flags: tuple[str, ...] = ()
    variable: str = ""
    glued: bool = False
    default: int | None = None


_GUNICORN = "gunicorn documentation, Settings"
_UVICORN = "uvicorn documentation, Settings"
_JVM = "java(1), JDK 17"
KNOBS = (
    Knob("gunicorn", "workers", "worker processes", _GUNICORN, ("--workers", "-w"), default=1),
    Knob("gunicorn", "threads", "threads in each worker", _GUNICORN, ("--threads",), default=1),
    Knob("gunicorn", "backlog", "connections that may wait to be accepted", _GUNICORN, ("--backlog",), default=2048),
    Knob("uvicorn", "workers", "worker processes", _UVICORN, ("--workers",), default=1),
    Knob("uvicorn", "backlog", "connections that may wait to be accepted", _UVICORN, ("--backlog",), default=2048),
    Knob("hypercorn", "workers", "worker processes", "hypercorn documentation, Configuring", ("--workers", "-w"),
         default=1),
    Knob("waitress", "threads", "threads that answer requests", "waitress documentation, Arguments", ("--threads",),
         default=4),
    Knob("uwsgi", "processes", "worker processes", "uWSGI documentation, Options", ("--processes", "-p", "--workers"),
         default=1),
    Knob("uwsgi", "threads", "threads in each worker", "uWSGI documentation, Options", ("--threads",), default=1),
    Knob("puma", "workers", "worker processes", "puma README", ("--workers", "-w"), default=0),
    Knob("node", "threadpool", "threads for files, DNS and crypto", "libuv documentation, Thread pool",
         variable="UV_THREADPOOL_SIZE", default=4),
    Knob("node", "heap_mb", "MiB for objects that live long", "node(1)", ("--max-old-space-size",)),
    Knob("java", "heap", "largest heap", _JVM, ("-Xmx",), glued=True),
    Knob("go", "gomaxprocs", "threads that run Go code at once", "Go documentation, package runtime",
         variable="GOMAXPROCS"),
)  # fmt: skip


def runtime_of(executable: str, *, go: bool = False, interpreter: str = "") -> Runtime:
    """By the program's name, the mark of Go's linker (go), or, for a script, the name of its interpreter."""
    if go:
        return GO
    runtime = _by_name(RUNTIMES, PurePath(executable).name) or NATIVE
    if runtime is not NATIVE or not interpreter:
        return runtime
    by_script = runtime_of(interpreter)
    return SCRIPT if by_script is NATIVE else by_script


def framework_of(command: Sequence[str]) -> Runtime | None:
    """The framework that a command line starts, by the names of its first four words that are no options."""
    words = [word for word in command if not word.startswith("-")][:4]
    known = (_by_name(FRAMEWORKS, PurePath(word).name.partition(":")[0]) for word in words)
    return next(filter(None, known), None)


def _by_name(rows: Sequence[Runtime], name: str) -> Runtime | None:
    return next((row for row in rows if re.fullmatch(row.program, name)), None)


@dataclass(frozen=True, slots=True)
class Given:
    """A knob, its value (None where unknown) and whether the command line or the environment sets it."""

    knob: Knob
    value: str | None
    said: bool


def knobs_of(runtime: str, framework: str, command: Sequence[str], environment: Mapping[str, str]) -> tuple[Given, ...]:
    """Every knob of a runtime and a framework (ids, "" for none), the framework's first."""
    given = []
    for knob in (knob for of in (framework, runtime) if of for knob in KNOBS if knob.of == of):
        place, default = place_of(knob, command), None if knob.default is None else str(knob.default)
        value = environment.get(knob.variable) if place is None else place.value
        given.append(Given(knob, default if value is None else value, said=value is not None))
    return tuple(given)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command line has a flag: `count` words from `first`. between: what separates flag and value."""

    first: int
    count: int
    flag: str
    value: str
    between: Literal["", "=", " "]


def place_of(knob: Knob, command: Sequence[str]) -> Place | None:
    """The last place of the flag, which counts; None where the command line does not have it."""
    place = None
    for number, word in enumerate(command[1:], start=1):
        for flag in knob.flags:
            if knob.glued and word.startswith(flag) and len(word) > len(flag):
                place = Place(number, 1, flag, word[len(flag) :], "")
            elif word.startswith(f"{flag}="):
                place = Place(number, 1, flag, word[len(flag) + 1 :], "=")
            elif not knob.glued and word == flag and number + 1 < len(command):
                place = Place(number, 2, flag, command[number + 1], " ")
    return place
