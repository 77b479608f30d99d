"""What a process of another user sees by mounts of its own (launch.py): a private /tmp and /var/tmp, so that files
under names that others can guess do not collide; and Python and Loadframe, if a folder on the way to them is closed to
other users. In place of a closed folder it gets an empty one, and in it what Loadframe runs from, read-only, at its own
path, so that first lines of scripts, RUNPATH and pyvenv.cfg stay right."""

import os
import re
import site
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
INSTALLED = ("bin", "lib", "lib64", "pyvenv.cfg")


def places() -> tuple[Path, ...]:
    """Where our Python and all that it imports lie. Not the folder of the script, which `python -m` makes the working
    folder. Of a search path that is, or contains, a whole home, only Loadframe; of such a prefix, what an installation
    or a virtual environment puts there."""
    imported = sys.path if sys.flags.safe_path else sys.path[1:]
    prefixes = [Path(prefix) for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)]
    searched = [Path(entry) for entry in (str(PACKAGE.parent), *imported) if entry]
    homes = [Path(os.path.realpath(os.path.expanduser(home))) for home in ("~", "~root")]  # noqa: PTH111 - may be none
    known = [*searched, *prefixes]
    whole = {entry for entry in known for home in homes if home.is_relative_to(os.path.realpath(entry))}
    ours = [PACKAGE] if PACKAGE.parent in whole else []
    needed = (entry for entry in known if entry not in whole)
    installed = (prefix / name for prefix in prefixes if prefix in whole for name in INSTALLED)
    return tuple(dict.fromkeys((*ours, *needed, *installed, Path(sys.executable))))


def view(places: Sequence[Path], closed: Callable[[Path], Iterable[Path]]) -> list[str]:
    """The options of launch.py that show these. closed: folders on the way to a path that the user may not enter.
    OSError."""
    options: list[str] = []
    shown: list[Path] = []
    for path in sorted({step for place in places if place.exists() for step in way(place)}):
        within = next((above for above in reversed(shown) if path.is_relative_to(above)), Path("/"))
        barred = [folder for folder in closed(path.parent) if folder != within and folder.is_relative_to(within)]
        if barred:
            options += ["--cover", str(barred[0])] if str(barred[0]) not in options else []
            options += ["--show", str(path)]
            shown.append(path)
    return options


def user_packages() -> dict[str, str]:
    """The variable by which a Python with another home finds our user's packages."""
    return {"PYTHONUSERBASE": site.getuserbase()} if site.getusersitepackages() in sys.path else {}


def way(path: Path) -> list[Path]:
    for step in (*reversed(path.parents), path):
        if step.is_symlink():
            link = Path(os.path.realpath(step.parent)) / step.name
            return [link, *way(link.parent / link.readlink() / path.relative_to(step))]
    return [Path(os.path.realpath(path))]


COMMON = ("/tmp", "/var/tmp")
NAMED = re.compile(r"(?<![\w.])/(?:var/)?tmp(?![^\s/:;,'\"=()])(?:/[^\s:;,'\"=()]+)?")


def own(
    command: Sequence[str], env: Mapping[str, str], needed: Iterable[Path], closed: Callable[[Path], Iterable[Path]]
) -> list[str]:
    """The options for private temporary folders. command: its words, and its working folder; what these, its
    environment and `needed` name is kept where its user has access, each with the folder directly in the common one. A
    common folder is left as it is if `command` names it itself, or something in it that does not exist: the process
    will make it, and others may look for it. closed: the folders on the way to a path that the user may not enter.
    OSError."""
    inherited = [value for name, value in env.items() if value == os.environ.get(name)]
    words = [*command, *(value for name, value in env.items() if value != os.environ.get(name))]
    named = {  # the path, or the last existing folder on the way to it
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
    for folder in COMMON:
        if path.is_relative_to(folder) and str(path) != folder:
            return Path(folder, path.relative_to(folder).parts[0])
    return path
