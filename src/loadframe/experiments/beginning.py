"""`loadframe init`: the first study of a user's own service, from its command or the process at its port."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path, PurePath
from typing import Any

import tomli_w

from loadframe.analysis.window import FEWEST_REQUESTS
from loadframe.connections.address import joined
from loadframe.diagnosis.remedies.declared import NAMED
from loadframe.diagnosis.sizes import SERVED_AT_ONCE
from loadframe.errors import StudyError, TooFewRequests, UsageError
from loadframe.experiments.choosing import Chosen, choose, company
from loadframe.experiments.limits_now import limits
from loadframe.formats.said import words as one_line
from loadframe.host import identity, listening
from loadframe.host.environment import located
from loadframe.kinds.service import file_settings
from loadframe.kinds.service.command_line import (
    CommandLine,
    Given,
    framework_of,
    knobs_of,
    parsed,
    runtime_of,
    with_knobs,
    with_port,
    without_secrets,
)
from loadframe.kinds.service.discovery import Discovered, discover, interpreter_of, is_go, name_of
from loadframe.kinds.service.kind import PATH
from loadframe.masking import remember
from loadframe.progress import counted
from loadframe.study.declaration import NAME
from loadframe.system.files import regular_file
from loadframe.units import show

LEVELS = (1, 2, 4, 8, 16)
MEASURE = {"window": "1s", "budget": "2m"}
RESPONSES, WINDOWS = 6, 60
"""For a slow service: responses of one client per window, and windows per budget."""
GROWTH = (1, 2, 4, 8)
OF_OURS = (
    "# Of your environment it gets PATH, HOME, LANG, TZ and what its runtime needs. More: pass_environment = [NAMES]"
)
SECRETS = (
    "The study leaves out what looks like a secret, in these variables: {}. Set them before each run, for example "
    "with `read -rs NAME; export NAME`."
)
AS_IT_RUNS = """\
# It is loaded as it runs, and nothing of it is changed, so a cause stays suspected. To have one confirmed, give the
# command that starts it (loadframe init --command ...), or say that it is yours (owned = true) and how a setting of it
# is changed while it runs (docs/service.md).
"""
MOST_PEERS = 8
MOST_BYTES = 1 << 16
MOST_VALUE = 10**8
EXAMPLE = "Declare a setting of your service as in this example."
HOT = "cpu.hot_thread"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """head: where it is set. command: of the target, where that must change."""

    name: str
    value: int
    head: str
    apply: Mapping[str, Any]
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beginning:
    """toml: the study. known: of the service; hints: what the user may add. secrets: what looks like one in the
    command, by the variables that stand for them."""

    name: str
    toml: str
    known: tuple[str, ...]
    hints: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def slower(self, shown: TooFewRequests) -> "Beginning":
        """With windows long enough for one client's requests."""
        response_s = max(shown.needed_s.values()) / FEWEST_REQUESTS
        window_s = math.ceil(RESPONSES * response_s)
        measure = {"window": f"{window_s}s", "budget": f"{math.ceil(WINDOWS * window_s / 60)}m"}
        changed = " and ".join(f"measure.{name} is {value}" for name, value in measure.items())
        hint = f"One client waits {show(response_s, 's')} for an answer, so {changed}."
        toml = self.toml.replace(_table("measure", MEASURE), _table("measure", measure))
        return replace(self, toml=toml, hints=(hint, *self.hints))


def begin(
    *, command: str | None = None, port: int | None = None, pid: int | None = None, path: str = "/", name: str = ""
) -> Beginning:
    # Raised now, so that no study is written with a name or path that its reader would refuse.
    if name and re.fullmatch(NAME, name) is None:
        raise UsageError(
            f"--name {one_line(name, 80)}: the name of a study has lower-case letters, digits and dashes only",
            remedy="For example --name my-shop.",
        )
    if wrong := [word for word in path.split() or [path] if PATH.fullmatch(word) is None]:
        raise UsageError(f"--path {one_line(wrong[0], 80)!r} is not a path", remedy="It begins with /, as in /about.")
    if command is not None:
        return of_command(command, port=port, path=path, name=name)
    if port is None and pid is None:
        raise StudyError("no service is named", remedy="Name its command, its port or its process.")
    return of_process(choose(port, pid), path=path, name=name)


def of_command(text: str, *, port: int | None = None, path: str = "/", name: str = "") -> Beginning:
    """The study of a service that this command starts in the current directory. port: the number in it at which the
    service listens, unless a usual flag has it. StudyError."""
    typed, secrets = without_secrets(parsed(text))
    remember(secrets.values())
    line = with_port(typed, port)
    program = _program(line)
    runtime = runtime_of(os.path.realpath(program), go=is_go(Path(program)), interpreter=interpreter_of(Path(program)))
    framework = framework_of(line.words)
    given = knobs_of(runtime.id, framework.id if framework is not None else "", line.words, line.environment)
    what = f"{framework.words} ({runtime.words})" if framework is not None else runtime.words
    if not line.takes_port and port is None:
        raise StudyError(
            f"the command does not say on which port the service listens: {text}",
            remedy="Name the port with --port, or give the service an option or a variable for it, as in --command "
            "'PORT=8000 node app.js'.",
        )
    name = name or _name(line.words)
    command = with_knobs(line, given)
    target: dict[str, Any] = {"kind": "service", "command": list(command.words), "folder": str(Path.cwd())}
    if command.environment:
        target["environment"] = dict(command.environment)
    if secrets:
        target["pass_environment"] = sorted(secrets)
    if not line.takes_port:
        target["listen"] = port
        where = f"port {port}; while it is measured, that has to be free"
    elif line.port:
        where = f"port {line.port}; Loadframe gives it a free port instead"
    else:
        where = "a free port from Loadframe"
    sentences = (f"The command starts {what}, which listens on {where}.",)
    declared = [option.knob.setting for option in given if _values(option)]
    hint = (
        f"It may vary {' and '.join(declared)}. Declare further settings of yours under [target.setting.NAME]."
        if declared
        else "No setting of it is declared: causes stay suspected. Declare yours under [target.setting.NAME]."
    )
    hints = (*([SECRETS.format(", ".join(sorted(secrets)))] if secrets else []), hint)
    return Beginning(name, _toml(name, what, target, path, given), sentences, hints, secrets)


def of_process(chosen: Chosen, *, path: str = "/", name: str = "") -> Beginning:
    process = discover(chosen.first[0])
    name = name or _name(process.command)
    sentences = [
        f"It is {process.words}.",
        f"It has {process.processes} {'process' if process.processes == 1 else 'processes'} with "
        f"{process.threads} {'thread' if process.threads == 1 else 'threads'}.",
        *chosen.said,
        *([f"Its unit is {process.unit}."] if process.unit else []),
        *([f"It runs in the container {process.container[:12]}."] if process.container else []),
        *company(chosen.first, process.unit),
        *_peers(process.pid),
        *_limits(process),
        *(
            f"{option.knob.meaning[:1].upper()}{option.knob.meaning[1:]}: {option.value}."
            for option in process.knobs
            if option.said
        ),
    ]
    toml = _toml(name, process.words, {"kind": "service", **chosen.where}, path, (), sentences)
    hint = "To have a cause confirmed, give the command: then Loadframe starts an instance of its own and changes that."
    return Beginning(name, toml, tuple(sentences), (hint,))


def _peers(pid: int) -> Iterator[str]:
    known = listening.peers([member.pid for member in identity.family(pid)])
    if not known:
        yield "It has no open connection that it made."
    for peer in known[:MOST_PEERS]:
        here = listening.at(peer.port, peer.number) if ip_address(peer.number).is_loopback else ()
        holders = listening.first_of(listening.holders([socket.inode for socket in here]))
        named = "".join(f" ({name_of(pid)}, pid {pid})" for pid in holders[:1])
        yield f"It has {counted(peer.connections, 'connection')} to {joined(peer.number, peer.port)}{named}."
    if len(known) > MOST_PEERS:
        yield f"It is connected to {len(known) - MOST_PEERS:,} further addresses."


def _limits(process: Discovered) -> Iterator[str]:
    now = limits(pid=process.pid)
    near = [limit for limit in now.limits if limit.status in ("reached", "near") and not limit.costs_nothing]
    for limit in near:
        use, most = (show(value, limit.unit) for value in (limit.use, limit.ceiling))
        yield f"{'Reached' if limit.status == 'reached' else 'Near'}: {limit.title}, {use} of {most} ({limit.id})."
    if not near:
        yield f"Of {len(now.limits)} limits of it and of this machine none is reached or near."
    if process.open_files is not None and "process.open_files" not in [limit.id for limit in near]:
        open_now, most_open = process.open_files
        yield f"It has {open_now:,} of at most {most_open:,} open files."


def _program(line: CommandLine) -> str:
    word = line.words[0]
    if "/" in word:
        program = str(Path.cwd() / word) if os.access(word, os.X_OK) else None
    else:
        program = located(word, line.environment.get("PATH", ""))
    if program is None:
        raise StudyError(f"there is no program {word}", remedy="Correct the command, or install the program.")
    return program


def _name(command: Iterable[str]) -> str:
    words = [word for word in command if not word.startswith("-")]
    scripts = [
        word for word in words if re.search(r"\.(py|js|mjs|cjs|ts|rb|php|jar)$|^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", word)
    ]
    first = PurePath(next(iter(scripts or words), "service")).name
    name = re.sub(r"[^a-z0-9]+", "-", first.partition(":")[0].rsplit(".", 1)[0].lower()).strip("-")
    return name[:40].strip("-") or "service"


def _values(option: Given) -> tuple[int | str, ...]:
    parts = re.fullmatch(r"([1-9][0-9]{0,8})([a-zA-Z]*)", option.value or "")
    if not option.said or parts is None:
        return ()
    numbers = [int(parts[1]) * by for by in GROWTH]
    return tuple(f"{number}{parts[2]}" for number in numbers) if parts[2] else tuple(numbers)


def _toml(
    name: str, what: str, target: Mapping[str, Any], path: str, given: Iterable[Given], sentences: Iterable[str] = ()
) -> str:
    question = f"How many requests a second does {name} answer, and what limits it?"
    command, folder = tuple(target.get("command", ())), Path(target.get("folder", "."))
    varied = [(option, values) for option in given if (values := _values(option))]
    other = suggested(command, target.get("environment", {}), folder)
    return "\n".join(
        (
            "# What to load, how, and what may be changed. All keys: loadframe study schema"
            + "".join(f"\n#   {one_line(sentence)}" for sentence in sentences),
            _table("study", {"name": name, "question": question}),
            _target(target, path, what, () if varied else other.command),
            *(_settings(varied) if varied else [_commented(other) if command else AS_IT_RUNS]),
            _table("workload", {"kind": "http"}, note="status and about the size of answers are checked"),
            _table("load", {"axis": "concurrency", "levels": list(LEVELS)}, note="clients at once"),
            _table("measure", MEASURE),
        )
    )


def _target(target: Mapping[str, Any], path: str, what: str, command: tuple[str, ...]) -> str:
    lines = _table("target", {**target, **({} if path == "/" else {"paths": path})}, note=what).splitlines()
    if command:
        at = next(number for number, line in enumerate(lines, start=1) if line.startswith("command = "))
        lines.insert(at, f"# command = {_value(list(command))}")
    if "pass_environment" in target:
        lines.append(f"# {SECRETS.format('those of pass_environment')}")
    elif "command" in target:
        lines.append(OF_OURS)
    return "".join(f"{line}\n" for line in lines)


def _settings(varied: Sequence[tuple[Given, tuple[int | str, ...]]]) -> Iterator[str]:
    yield _table("target.settings", {option.knob.setting: values[0] for option, values in varied})
    for option, values in varied:
        apply = (
            {"apply": "environment", "name": option.knob.variable} if option.knob.variable else {"apply": "argument"}
        )
        row = {"values": list(values), **apply}
        yield _table(f"target.setting.{option.knob.setting}", row, note=f"{option.knob.meaning} ({option.knob.source})")


def _commented(suggestion: Suggestion) -> str:
    rows = _table("target.settings", {suggestion.name: suggestion.value}) + _table(
        f"target.setting.{suggestion.name}",
        {"values": [suggestion.value * by for by in GROWTH], **suggestion.apply},
        note='apply: "environment", "argument", "file" or "command"',
    )
    also = " Do the same with `command` above, instead of the one before it." if suggestion.command else ""
    head = f"{one_line(suggestion.head)} Without the comment signs Loadframe may change it, to confirm a cause.{also}"
    return "".join(f"# {line}\n" for line in [head, *rows.splitlines()])


def _table(name: str, rows: Mapping[str, Any], note: str = "") -> str:
    head = f"[{name}]" + (f"{' ' * max(1, 38 - len(name))}# {note}" if note else "")
    return head + "\n" + "".join(f"{key} = {_value(value)}\n" for key, value in rows.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        keys = [tomli_w.dumps({key: 0}).removesuffix(" = 0\n") for key in value]
        return f"{{ {', '.join(f'{key} = {_value(entry)}' for key, entry in zip(keys, value.values(), strict=True))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def suggested(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Suggestion:
    of_environment = [
        Suggestion(
            _setting_name(name), int(value), f"{name} is set by your command.", {"apply": "environment", "name": name}
        )
        for name, value in environment.items()
        if re.fullmatch(r"[1-9][0-9]{0,7}", value)
    ]
    suggestions = [*of_environment, *_of_files(command, folder)]
    named = [suggestion for suggestion in suggestions if _bounds_work(suggestion.name)]
    return (named or suggestions or [Suggestion("pool", 4, EXAMPLE, {"apply": "environment", "name": "POOL"})])[0]


def _bounds_work(name: str) -> bool:
    return any(part in name for cause in (*SERVED_AT_ONCE, HOT) for part in NAMED[cause])


def _of_files(command: Sequence[str], folder: Path) -> Iterator[Suggestion]:
    """Only numbers whose name says what they do: a configuration file has many."""
    for at, word in enumerate(command[1:], start=1):
        option, equals, path = word.rpartition("=")
        for key, value in _numbers(folder / path).items():
            name = _setting_name(key)
            if value < MOST_VALUE and _bounds_work(name):
                words = (*command[:at], f"{option}{equals}{{file}}", *command[at + 1 :])
                apply = {"apply": "file", "file": str(folder / path), "key": key}
                yield Suggestion(name, value, f"{key} is set in {Path(path).name}.", apply, words)


def _numbers(path: Path) -> Mapping[str, int]:
    format_ = file_settings.ENDINGS.get(path.suffix.lower())
    try:
        if format_ is None:
            return {}
        with os.fdopen(regular_file(path, links=True), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        return file_settings.numbers(data.decode("utf-8"), format_) if len(data) <= MOST_BYTES else {}
    except (OSError, ValueError, ImportError):
        return {}


def _setting_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", text.lower()).lstrip("_0123456789")[:63] or "setting"
