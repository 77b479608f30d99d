"""Which change log this machine permits for a tree, found out by trying."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import MachineError
from loadframe.indexing.fanotify import Fanotify, queue_length
from loadframe.indexing.inotify import Inotify, limit
from loadframe.indexing.readers import Reader
from loadframe.model import Requirement

KERNEL: Mapping[str, Callable[[Path], Reader]] = {"fanotify": Fanotify, "inotify": Inotify}
"""In the order of preference: the first needs one mark for a file system, the second a watch for each directory."""
INJECTED = "Records can be injected instead: they load the pipeline and say nothing of the tree."


@dataclass(frozen=True, slots=True)
class Chosen:
    """refused: why those before it were not taken, in words, by name."""

    reader: Reader
    refused: Mapping[str, str]


def choose(root: Path, wanted: str = "auto") -> Chosen:
    """The kernel's change log for a tree, opened. wanted: of KERNEL, or auto: the first permitted one. MachineError."""
    refused: dict[str, str] = {}
    for name, opened in KERNEL.items():
        if wanted in (name, "auto"):
            try:
                return Chosen(opened(root), refused)
            except MachineError as error:
                refused[name] = str(error)
    if not refused:
        raise MachineError(
            f"{wanted!r} is no change log of the kernel", remedy=f"Use one of auto, {', '.join(KERNEL)}."
        )
    raise MachineError(f"The changes of {root} cannot be followed. {' '.join(refused.values())}", remedy=INJECTED)


def permitted(place: Path) -> list[Requirement]:
    """The change logs as `loadframe doctor` shows them, tried on a directory without subdirectories."""
    details = {"fanotify": f"{queue_length()} records may wait", "inotify": f"{limit('max_user_watches')} directories"}
    requirements = []
    for name, opened in KERNEL.items():
        refused = ""
        try:
            opened(place).close()
        except MachineError as error:
            refused = str(error)
        except OSError as error:
            refused = f"{name} is refused: {os.strerror(error.errno or 0)}"
        requirements.append(Requirement("index", f"change log: {name}", None if refused else details[name], refused))
    return requirements
