"""The setting that a first study suggests in comments: a number that the command or one of its configuration files has,
and whose name says that it bounds how much is done at a time."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.diagnosis.remedies.declared import NAMED, PARALLELISM
from loadframe.kinds.service import formats
from loadframe.system.files import regular_file

MOST_BYTES = 1 << 16
"""Of a configuration file that is looked through."""
MOST_VALUE = 10**8
EXAMPLE = "Declare a setting of your service as in this example."
HOT = "cpu.hot_thread"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A setting. head: where it was found, a sentence. apply: the keys that say how it is applied. command: of the
    target, where that has to be another one."""

    name: str
    value: int
    head: str
    apply: Mapping[str, Any]
    command: tuple[str, ...] = ()


def suggested(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Suggestion:
    """The setting to suggest, an example where there is none. folder: in which the command begins."""
    found = [*_of_environment(environment), *_of_files(command, folder)]
    named = [one for one in found if _bounds_work(one.name)]
    return next(iter(named or found), Suggestion("pool", 4, EXAMPLE, {"apply": "environment", "name": "POOL"}))


def _bounds_work(name: str) -> bool:
    return any(part in name for cause in (*PARALLELISM, HOT) for part in NAMED[cause])


def _of_environment(environment: Mapping[str, str]) -> Iterator[Suggestion]:
    for name, value in environment.items():
        if re.fullmatch(r"[1-9][0-9]{0,7}", value):
            apply = {"apply": "environment", "name": name}
            yield Suggestion(_name(name), int(value), f"{name} is set by your command.", apply)


def _of_files(command: Sequence[str], folder: Path) -> Iterator[Suggestion]:
    """Of the files among the words of a command whose format is known. Only a number whose name tells what it does: a
    file has many."""
    for at, word in enumerate(command[1:], start=1):
        option, equals, path = word.rpartition("=")
        for key, value in _numbers(folder / path).items():
            name = _name(key)
            if value < MOST_VALUE and _bounds_work(name):
                words = (*command[:at], f"{option}{equals}{{file}}", *command[at + 1 :])
                apply = {"apply": "file", "file": str(folder / path), "key": key}
                yield Suggestion(name, value, f"{key} is set in {Path(path).name}.", apply, words)


def _numbers(path: Path) -> Mapping[str, int]:
    """What a configuration file sets to whole numbers; nothing of what is none, is long, or cannot be read."""
    format_ = formats.ENDINGS.get(path.suffix.lower())
    try:
        if format_ is None:
            return {}
        with os.fdopen(regular_file(path, links=True), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        return formats.numbers(data.decode("utf-8"), format_) if len(data) <= MOST_BYTES else {}
    except (OSError, ValueError, ImportError):
        return {}


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", text.lower()).lstrip("_0123456789")[:63] or "setting"
