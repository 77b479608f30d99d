"""Python and Loadframe, where a folder on the way to them is closed to other users, as root's home is: how a process of
another user sees them all the same.

It gets mounts of its own (launch.py): an empty folder in place of the closed one, and in it what Loadframe runs from,
read-only, each at its own path, so that all that names a path stays right: first lines of scripts, RUNPATH, pyvenv.cfg.
Nothing else of the closed folder is to be seen there.
"""

import os
import site
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
INSTALLED = ("bin", "lib", "lib64", "pyvenv.cfg")


def places() -> tuple[Path, ...]:
    """What our Python and all that it imports lie in. Not the folder of the script, which `python -m` makes the working
    folder: a child of ours does not look there, either (environment.python). Of a search path that is a whole home, or
    has one in it, Loadframe alone; of such a prefix, what an installation or a virtual environment puts there."""
    imported = sys.path if sys.flags.safe_path else sys.path[1:]
    prefixes = [Path(one) for one in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)]
    searched = [Path(entry) for entry in (str(PACKAGE.parent), *imported) if entry]
    homes = [Path(os.path.realpath(os.path.expanduser(home))) for home in ("~", "~root")]  # noqa: PTH111 - may be none
    known = [*searched, *prefixes]
    whole = {entry for entry in known for home in homes if home.is_relative_to(os.path.realpath(entry))}
    ours = [PACKAGE] if PACKAGE.parent in whole else []
    needed = (entry for entry in known if entry not in whole)
    installed = (prefix / name for prefix in prefixes if prefix in whole for name in INSTALLED)
    return tuple(dict.fromkeys((*ours, *needed, *installed, Path(sys.executable))))


def view(places: Sequence[Path], closed: Callable[[Path], Iterable[Path]]) -> list[str]:
    """The options of launch.py that show these; none where no folder on the way to one is closed. closed: those on the
    way to a path that the user may not enter. OSError."""
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
    """The variable by which a Python with another home finds the packages of our user, where we use these."""
    return {"PYTHONUSERBASE": site.getuserbase()} if site.getusersitepackages() in sys.path else {}


def way(path: Path) -> list[Path]:
    """The links on the way to a path, each where it really is, and what they lead to."""
    for step in (*reversed(path.parents), path):
        if step.is_symlink():
            link = Path(os.path.realpath(step.parent)) / step.name
            return [link, *way(link.parent / link.readlink() / path.relative_to(step))]
    return [Path(os.path.realpath(path))]
