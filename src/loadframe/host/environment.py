"""What a process of ours is started with, so that it searches nothing in its working folder, to which others may
write."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import extra

if TYPE_CHECKING:  # each command begins with this module, and needs no record
    from loadframe.model import Requirement

NO_FOLDER = Path("/")
"""Working folder of a program that needs none: only root may put anything there."""
SYSTEM = "/usr/sbin:/usr/local/sbin"
"""Folders of servers, often not in an ordinary user's PATH."""
SAFE_PATH, SAFELY = "PYTHONSAFEPATH", "loadframe"
"""The variable that does what -P does (see `python`), also for the Python that a library starts. Any text sets it; this
one marks it as ours, so that programs of others do not get it."""
FOLDERS = ("LOADFRAME_STATE", "LOADFRAME_SCRATCH", "XDG_STATE_HOME")
SEPARATORS = {"PATH": ":", "LD_LIBRARY_PATH": ":", "LUA_PATH": ";", "LUA_CPATH": ";"}
"""An empty entry means the working folder (execvp(3), ld.so(8)), or, in Lua, the defaults."""
LUA = {"LUA_PATH": "/usr/share/lua/5.1/?.lua", "LUA_CPATH": "/usr/lib/lua/5.1/?.so"}
"""These replace the defaults of LuaJIT (luaconf.h) and sysbench (sb_lua.c), which begin with `./?.lua`."""
PASSED = {
    "the user": ("HOME", "USER", "LOGNAME", "SHELL"),  # environ(7)
    "folders": ("PATH", "TMPDIR", "LD_LIBRARY_PATH"),
    "language and time": ("LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY",
                          "LC_NUMERIC", "LC_TIME", "TZ", "TZDIR"),  # locale(7), tzset(3)
    "certificates": ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    "Python": ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX"),
    "Java": ("JAVA_HOME", "CLASSPATH"),
    "Node.js": ("NODE_PATH",),
    "Go": ("GOROOT", "GOPATH"),
    "Ruby": ("GEM_HOME", "GEM_PATH", "RUBYLIB", "BUNDLE_GEMFILE"),
    "Perl": ("PERL5LIB",),
    "PHP": ("PHPRC", "PHP_INI_SCAN_DIR"),
    ".NET": ("DOTNET_ROOT",),
    "Erlang": ("ERL_LIBS", "MIX_ENV"),
}  # fmt: skip
"""What a program of others gets of our environment. No variable here usually has a password, a token or an address of
another system in it; options that name programs or code to load first (NODE_OPTIONS, JAVA_TOOL_OPTIONS, LD_PRELOAD) are
left out, too."""


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours. -P: without it the working folder comes before the standard library. Not
    -I: that also drops PYTHONPATH and the user's packages, where Loadframe itself may be installed."""
    return [sys.executable, "-P", "-m", module, *arguments]


def importing(module: str) -> list[str]:
    return [sys.executable, "-P", "-c", f"import {module}"]


def own_environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """With the safe path, and absolute state folders: our Python processes work in `/`."""
    variables = environment(given)
    folders = {name: str(Path(variables[name]).absolute()) for name in FOLDERS if variables.get(name)}
    return {**variables, **folders, SAFE_PATH: variables.get(SAFE_PATH) or SAFELY}


def take_own_environment() -> None:
    own = own_environment()
    for name in [name for name in os.environ if name not in own]:
        del os.environ[name]
    os.environ.update(own)


def is_own(command: Sequence[str | Path]) -> bool:
    ours = [*map(str, command[:4])]
    return ours[:3] == python("")[:3] and "".join(ours[3:]).startswith(("loadframe.", "loadframe_"))


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process, by default ours. Search paths lose relative entries; those of PYTHONPATH are made
    absolute."""
    variables = dict(os.environ if given is None else given)
    if variables.get(SAFE_PATH) == SAFELY:
        del variables[SAFE_PATH]
    for name, separator in SEPARATORS.items():
        variables[name] = _absolute(variables.get(name, ""), separator) or LUA.get(name, "")
    variables["PYTHONPATH"] = ":".join(
        str(Path(entry).absolute()) for entry in variables.get("PYTHONPATH", "").split(":") if entry
    )
    empty = [name for name in (*SEPARATORS, "PYTHONPATH") if not variables[name]]
    return {name: value for name, value in variables.items() if name not in empty}


def passed_on(more: Iterable[str] = ()) -> dict[str, str]:
    names = dict.fromkeys((*(name for row in PASSED.values() for name in row), *more))
    return {name: os.environ[name] for name in names if name in os.environ}


def located(program: str, after: str = "") -> str | None:
    """Relative entries of PATH are ignored. after: folders to search after PATH, separated by colons."""
    path = _absolute(f"{os.environ.get('PATH', os.defpath)}:{after}", ":")
    return shutil.which(program, path=path)


def _absolute(path: str, separator: str) -> str:
    return separator.join(entry for entry in path.split(separator) if entry.startswith("/"))


def python_package(kind: str, name: str, of: str) -> "Requirement":
    above = name.rpartition(".")[0]  # imported by find_spec, which fails if it is missing
    spec = importlib.util.find_spec(name) if not above or importlib.util.find_spec(above) else None
    where = spec.origin if spec else None
    from loadframe.model import Requirement

    return Requirement(kind, f"Python package {name}", where, extra(of))
