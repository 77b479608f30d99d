"""A typed command line as a study declares it, and the runtimes and frameworks of services: how each is recognised, and
its knobs for how much it does at a time. Only `loadframe init` uses it; no diagnosis depends on it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal

from loadframe.errors import StudyError
from loadframe.knowledge.rows import toml_rows
from loadframe.masking import are_words, is_secret, replaced_words, secrets_in

_ROWS = toml_rows(Path(__file__).with_name("runtimes.toml"))
PORT = "{port}"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.S)
_SHELL = re.compile(r"^(\||\|\||&&|&|;|<|>|>>|2>|2>&1)$")
_PORT_FLAGS = ("--port", "-p", "--http-port", "--listen-port", "--server.port", "-Dserver.port")
_ADDRESS_FLAGS = ("--bind", "-b", "--listen", "--http", "--http-socket", "--address", "--addr")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime, or a framework on one. words: as people call it. program: a pattern of the program's whole name; of a
    framework, that of a program, a script or a module."""

    id: str
    words: str
    program: str


GO = Runtime("go", "Go", "")
NATIVE = Runtime("native", "a compiled program", "")
SCRIPT = Runtime("script", "a script", "")


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting of a runtime or framework (of: its id) for how much it does at a time. flags: the one to write first.
    variable: of the environment, "" for a flag. glued: its value follows the flag without a blank (-Xmx64m). default:
    None where it depends. source: of flag and default."""

    of: str
    setting: str
    meaning: str
    source: str
    flags: tuple[str, ...] = ()
    variable: str = ""
    glued: bool = False
    default: int | None = None


RUNTIMES, FRAMEWORKS = (tuple(Runtime(**row) for row in _ROWS[rows]) for rows in ("runtimes", "frameworks"))
KNOBS = tuple(Knob(**row) for row in _ROWS["knobs"])


def runtime_of(executable: str, *, go: bool = False, interpreter: str = "") -> Runtime:
    """The runtime, by the program's name, the mark of Go's linker (go), or the name of a script's interpreter."""
    if go:
        return GO
    runtime = _by_name(RUNTIMES, PurePath(executable).name) or NATIVE
    if runtime is not NATIVE or not interpreter:
        return runtime
    by_script = runtime_of(interpreter)
    return SCRIPT if by_script is NATIVE else by_script


def framework_of(command: Sequence[str]) -> Runtime | None:
    """The framework, by the names of the first four words that are no options."""
    words = [word for word in command if not word.startswith("-")][:4]
    known = (_by_name(FRAMEWORKS, PurePath(word).name.partition(":")[0]) for word in words)
    return next(filter(None, known), None)


def _by_name(rows: Sequence[Runtime], name: str) -> Runtime | None:
    return next((row for row in rows if re.fullmatch(row.program, name)), None)


@dataclass(frozen=True, slots=True)
class Given:
    """value: None where unknown. said: whether the command line or the environment sets it."""

    knob: Knob
    value: str | None
    said: bool


def knobs_of(runtime: str, framework: str, command: Sequence[str], environment: Mapping[str, str]) -> tuple[Given, ...]:
    """runtime, framework: ids, "" for none; the framework's knobs first."""
    given = []
    for knob in (knob for of in (framework, runtime) if of for knob in KNOBS if knob.of == of):
        place, default = place_of(knob, command), None if knob.default is None else str(knob.default)
        value = environment.get(knob.variable) if place is None else place.value
        given.append(Given(knob, default if value is None else value, said=value is not None))
    return tuple(given)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a flag: `count` words from `first`. between: what separates flag and value."""

    first: int
    count: int
    flag: str
    value: str
    between: Literal["", "=", " "]


def place_of(knob: Knob, command: Sequence[str]) -> Place | None:
    """The last place of the flag, which counts; None for none."""
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


@dataclass(frozen=True, slots=True)
class CommandLine:
    """environment: variables before its words. port: the number that {port} replaces."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None

    @property
    def takes_port(self) -> bool:
        return any(PORT in word for word in (*self.words, *self.environment.values()))


def parsed(text: str) -> CommandLine:
    """A line split as a POSIX shell does, without its other features. StudyError for a line that uses these, or is
    empty."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise StudyError(f"the command {text!r} is not complete: {error}", remedy="Close its quotes.") from error
    if special := next((word for word in words if _SHELL.fullmatch(word)), None):
        raise StudyError(
            f"the command has {special!r}, which only a shell understands",
            remedy="Give the service's own command, or a script that starts it.",
        )
    count = next((number for number, word in enumerate(words) if not _VARIABLE.fullmatch(word)), len(words))
    environment = dict(word.split("=", 1) for word in words[:count])
    if not words[count:]:
        raise StudyError("the command names no program", remedy='For example --command "python3 app.py --port 8000".')
    return CommandLine(tuple(words[count:]), environment)


def without_secrets(line: CommandLine) -> tuple[CommandLine, dict[str, str]]:
    """Words with {ENV:NAME} for secrets, variables without them; and the secrets by the names of variables."""
    values = {name: value for name, value in line.environment.items() if any(secrets_in({name: value}))}
    environment = {name: value for name, value in line.environment.items() if name not in values}

    def stand_in(secret: str, name: str) -> str:
        variable = _variable(name, values)
        values[variable] = secret
        return f"{{ENV:{variable}}}"

    words = replaced_words(line.words, stand_in) if are_words(line.words) else line.words
    return CommandLine(tuple(words), environment), values


def _variable(option: str, taken: Mapping[str, str]) -> str:
    name = re.sub(r"[^A-Z0-9]+", "_", option[:40].upper()).strip("_0123456789") or "SERVICE"
    name = name if is_secret(name) else f"{name}_PASSWORD"
    return next(candidate for candidate in (name, *(f"{name}_{n}" for n in range(2, 1000))) if candidate not in taken)


def with_port(line: CommandLine, port: int | None) -> CommandLine:
    """The line with {port} in place of the number where it listens: `port`, else that of a usual flag or the variable
    PORT."""
    number = port if port is not None else _named(line)
    if number is None:
        return line
    whole = re.compile(rf"(?<![0-9.]){number}(?![0-9])")
    words = tuple(word if at == 0 else whole.sub(PORT, word) for at, word in enumerate(line.words))
    environment = {name: whole.sub(PORT, value) for name, value in line.environment.items()}
    return CommandLine(words, environment, number)


def _named(line: CommandLine) -> int | None:
    words = line.words
    candidates = [line.environment.get("PORT", "")]
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        value = value if equals else next(iter(words[at + 1 : at + 2]), "")
        if flag in _PORT_FLAGS:
            candidates.append(value)
        elif flag in _ADDRESS_FLAGS:
            candidates.append(value.rpartition(":")[2])
    numbers = [int(text) for text in candidates if text.isascii() and text.isdigit()]
    return next((number for number in numbers if 0 < number < 65536), None)


def with_knobs(line: CommandLine, given: Sequence[Given]) -> CommandLine:
    """The line with {setting} in place of the value of each knob that it sets itself."""
    for knob in (knob_given.knob for knob_given in given if knob_given.said):
        place, setting = place_of(knob, line.words), f"{{{knob.setting}}}"
        if place is None:
            others = {name: value for name, value in line.environment.items() if name != knob.variable}
            line = replace(line, environment=others)  # the study sets it: apply = "environment"
            continue
        written = (place.flag, setting) if place.between == " " else (f"{place.flag}{place.between}{setting}",)
        words = (*line.words[: place.first], *written, *line.words[place.first + place.count :])
        line = replace(line, words=words)
    return line
