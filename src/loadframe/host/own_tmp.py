"""A /tmp and a /var/tmp of its own for a process that another user runs: what it puts there under names that others can
guess, and what others have put there for it, do not meet."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from loadframe.host.own_python import way

COMMON = ("/tmp", "/var/tmp")
NAMED = re.compile(r"(?<![\w.])/(?:var/)?tmp(?![^\s/:;,'\"=()])(?:/[^\s:;,'\"=()]+)?")


def own(
    told: Sequence[str], env: Mapping[str, str], needed: Iterable[Path], closed: Callable[[Path], Iterable[Path]]
) -> list[str]:
    """The options of launch.py. told: the words of its command and its working folder; with what its environment names
    and `needed`, they are kept where its user may come to them, each with the folder in the common one that it lies in,
    as a program finds what it needs next to it. A common folder is left as it is where what is told names it itself, or
    something in it that is not there: the process is to make it, and others may look for it. closed: the folders on the
    way to a path that the user may not enter. OSError."""
    inherited = [value for name, value in env.items() if value == os.environ.get(name)]
    words = [*told, *(value for name, value in env.items() if value != os.environ.get(name))]
    named = {  # the path, or the last folder on the way to it that is there
        next(above for above in (Path(path), *Path(path).parents) if above.exists())
        for word in words
        for path in NAMED.findall(word)
    }
    shared = set(map(str, named))
    kept = {
        *(_whole(step) for path in named for step in (path, *way(path))),
        *needed,
        *(Path(path) for value in inherited for path in NAMED.findall(value)),
    }
    steps = {step for path in kept if str(path) not in COMMON and path.exists() for step in way(path)}
    options = []
    for folder in COMMON:
        if folder in shared or Path(folder).is_symlink() or not Path(folder).is_dir():
            continue
        options += ["--own", folder]
        shown: list[Path] = []
        for step in sorted(step for step in steps if step.is_relative_to(folder)):
            if not any(step.is_relative_to(above) for above in shown) and not any(closed(step.parent)):
                shown.append(step)
                options += ["--keep", str(step)]
    return options


def _whole(path: Path) -> Path:
    """The folder directly in a common one that a path lies in; the path itself elsewhere."""
    for folder in COMMON:
        if path.is_relative_to(folder) and str(path) != folder:
            return Path(folder, path.relative_to(folder).parts[0])
    return path
