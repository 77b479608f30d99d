"""`loadframe init`: the first study of a service of the reader's own, written from its command or from the process that
is found at its port. Nothing is started and nothing is asked of the service here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import tomli_w

from loadframe.errors import StudyError, TargetError
from loadframe.host import listening
from loadframe.host.environment import located
from loadframe.kinds.service.command_line import CommandLine, parsed, with_knobs, with_port
from loadframe.kinds.service.discovery import Discovered, discover, is_go
from loadframe.kinds.service.runtimes import Given, framework_of, knobs_of, runtime_of

LEVELS = (1, 2, 4, 8, 16)
GROWTH = (1, 2, 4, 8)
"""A declared knob may have these multiples of its value."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A study, and what it was made from. name: of the study. toml: its text. found: what is known of the service, one
    sentence each. hints: what the reader may add, one sentence each."""

    name: str
    toml: str
    found: tuple[str, ...]
    hints: tuple[str, ...]


def begin(
    *, command: str | None = None, port: int | None = None, pid: int | None = None, path: str = "/", name: str = ""
) -> Beginning:
    """The first study of a service: of what this command starts, else of the process that listens at this port, else of
    this process. StudyError, TargetError."""
    if command is not None:
        return of_command(command, port=port, path=path, name=name)
    if port is not None:
        return of_process(discover(_listener(port) if pid is None else pid), port=port, path=path, name=name)
    if pid is None:
        raise StudyError("no service is named", remedy="Name its command, its port or its process.")
    return of_process(discover(pid), path=path, name=name)


def _listener(port: int) -> int:
    sockets = listening.at(port)
    if not sockets:
        raise TargetError(
            f"no process of this machine listens at port {port}", remedy="Start the service, or name its command."
        )
    holders = listening.first_of(listening.holders([one.inode for one in sockets]))
    if not holders:
        raise TargetError(
            f"which process listens at port {port} cannot be seen: it belongs to another user or container",
            remedy='Run `loadframe init` as root, or load it by its address: target.kind = "url".',
        )
    return holders[0]


def of_command(
    text: str, *, port: int | None = None, folder: Path | None = None, path: str = "/", name: str = ""
) -> Beginning:
    """The study of a service that this command starts. port: the number in it at which the service listens, where that
    is not the value of a usual flag. folder: where the command begins; None: the current one. StudyError."""
    line = with_port(parsed(text), port)
    program = _program(line, folder)
    runtime = runtime_of(os.path.realpath(program), go=is_go(Path(program)))
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
    target: dict[str, Any] = {"kind": "service", "command": list(command.words)}
    target |= {"folder": str((folder or Path.cwd()).absolute())}
    if command.environment:
        target["environment"] = dict(command.environment)
    if not line.takes_port:
        target["listen"] = port
    on = "Loadframe gives it a free port instead" if line.takes_port else "while it is measured, that has to be free"
    found = (f"The command starts {what}, which listens on port {line.port or port}; {on}.",)
    return Beginning(name, _toml(name, what, target, path, given), found, _hints(given))


def of_process(process: Discovered, *, port: int | None = None, path: str = "/", name: str = "") -> Beginning:
    """The study of a service that runs: it is loaded, and never changed. port: on which it is asked."""
    name = name or _name(process.command)
    where = {"listen": port} if port is not None else {"pid": process.pid}
    found = [f"It is {process.words}."]
    found += [
        f"It has {process.processes} {'process' if process.processes == 1 else 'processes'} with "
        f"{process.threads} {'thread' if process.threads == 1 else 'threads'}."
    ]
    found += [f"Its unit is {process.unit}."] if process.unit else []
    found += [f"It runs in the container {process.container[:12]}."] if process.container else []
    if process.open_files is not None:
        use, most = process.open_files
        found += [f"It has {use:,} of at most {most:,} open files."]
    found += [
        f"{one.knob.meaning[:1].upper()}{one.knob.meaning[1:]}: {one.value}." for one in process.knobs if one.said
    ]
    toml = _toml(name, process.words, {"kind": "service", **where}, path, ())
    hint = "To have a cause confirmed, give the command: then Loadframe starts an instance of its own and changes that."
    return Beginning(name, toml, tuple(found), (hint,))


def _program(line: CommandLine, folder: Path | None) -> str:
    word = line.words[0]
    if "/" in word:
        found = str((folder or Path.cwd()) / word) if os.access((folder or Path.cwd()) / word, os.X_OK) else None
    else:
        found = located(word, line.environment.get("PATH", ""))
    if found is None:
        raise StudyError(f"there is no program {word}", remedy="Correct the command, or install the program.")
    return found


def _name(command: Iterable[str]) -> str:
    """For the study: by the first word that names a script, an application or a program of its own."""
    words = [word for word in command if not word.startswith("-")]
    scripts = [
        word for word in words if re.search(r"\.(py|js|mjs|cjs|ts|rb|php|jar)$|^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", word)
    ]
    first = PurePath(next(iter(scripts or words), "service")).name
    name = re.sub(r"[^a-z0-9]+", "-", first.partition(":")[0].rsplit(".", 1)[0].lower()).strip("-")
    return name[:40].strip("-") or "service"


def _hints(given: Iterable[Given]) -> tuple[str, ...]:
    declared = [one.knob.setting for one in given if _values(one)]
    if declared:
        return (
            f"It may vary {' and '.join(declared)}. Declare further settings of yours under [target.setting.NAME].",
        )
    return ("No setting of it is declared: causes stay suspected. Declare yours under [target.setting.NAME].",)


def _values(one: Given) -> tuple[int | str, ...]:
    """What a knob may have: multiples of its value. None where that is no number, or is not in the command."""
    parts = re.fullmatch(r"([1-9][0-9]{0,8})([a-zA-Z]*)", one.value or "")
    if not one.said or parts is None:
        return ()
    numbers = [int(parts[1]) * by for by in GROWTH]
    return tuple(f"{number}{parts[2]}" for number in numbers) if parts[2] else tuple(numbers)


# --- its text -------------------------------------------------------------------------------------------------------


def _toml(name: str, what: str, target: Mapping[str, Any], path: str, given: Iterable[Given]) -> str:
    given = tuple(given)
    question = f"How many requests a second does {name} answer, and what limits it?"
    return "\n".join(
        (
            "# What to load, how, and what may be changed. All keys: loadframe study schema",
            _table("study", {"name": name, "question": question}),
            _table("target", {**target, **({} if path == "/" else {"paths": path})}, note=what),
            *_settings(given, target.get("environment", {})),
            _table("workload", {"kind": "http"}),
            _table("workload.options", {"checked": "status"}, note='"bytes": the bodies of answers are compared, too'),
            _table("load", {"axis": "concurrency", "levels": list(LEVELS)}, note="clients at once"),
            _table("measure", {"window": "1s", "budget": "2m"}),
        )
    )


def _settings(given: Iterable[Given], environment: Mapping[str, str]) -> Iterator[str]:
    varied = [(one, values) for one in given if (values := _values(one))]
    if varied:
        yield _table("target.settings", {one.knob.setting: values[0] for one, values in varied})
    for one, values in varied:
        apply = {"apply": "environment", "name": one.knob.variable} if one.knob.variable else {"apply": "argument"}
        row = {"values": list(values), **apply}
        yield _table(f"target.setting.{one.knob.setting}", row, note=f"{one.knob.meaning} ({one.knob.source})")
    if not varied:
        yield _suggested(environment)


def _suggested(environment: Mapping[str, str]) -> str:
    """A setting to declare, in comments: a variable of the command that is a whole number, else an example."""
    own = [name for name, value in environment.items() if re.fullmatch(r"[1-9][0-9]{0,8}", value)]
    variable, value = (own[0], int(environment[own[0]])) if own else ("POOL", 4)
    setting = re.sub(r"[^a-z0-9_]", "_", variable.lower()).lstrip("_0123456789") or "setting"
    head = f"{variable} is set by your command." if own else "Declare a setting of your service as in this example."
    rows = _table("target.settings", {setting: value}) + _table(
        f"target.setting.{setting}",
        {"values": [value * by for by in GROWTH], "apply": "environment", "name": variable},
        note='apply: "environment", "argument", "file" or "command"',
    )
    lines = [f"{head} Without the comment signs Loadframe may change it, to confirm a cause.", *rows.splitlines()]
    return "".join(f"# {line}\n" for line in lines)


def _table(name: str, rows: Mapping[str, Any], note: str = "") -> str:
    head = f"[{name}]" + (f"{' ' * max(1, 38 - len(name))}# {note}" if note else "")
    return head + "\n" + "".join(f"{key} = {_value(value)}\n" for key, value in rows.items())


def _value(value: Any) -> str:
    """As TOML has it, in one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _key(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
