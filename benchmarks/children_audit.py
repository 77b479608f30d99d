"""What a command starts: of each program that Loadframe's own processes execute, as whom, with which environment, in
which folder, and, where it is a Python of ours, whether it takes modules from there.

Programs that those start in turn (a server its workers, a study's script its tools) are counted, and judged by one
question alone: whether one is root that is not declared to be."""

import os
import pwd
import re
import stat
from collections import Counter
from dataclasses import dataclass, field

from file_calls import Call, named, text, texts
from loadframe.host.environment import PASSED, SEPARATORS
from loadframe.host.privilege import FREE
from loadframe.host.processes import MARK
from path_audit import Paths

OURS = re.compile(r"loadframe|python[.\d]* (-m loadframe\..*|-c .*|launch\.py|loadframe)")
AS_ROOT = {
    "python": "a process of Loadframe's own: recorder, launcher, watch",
    "loadframe": "the command",
    "true": "does nothing: whether perf may sample is tried with it",
    "uname": "dask asks what machine this is",
    "ip": "looks at the machine's network",
    "tc": "looks at the machine's network",
    "perf": "samples stacks of every process",
    "apt-get": "installs what a case needs",
    "dpkg": "asks which packages are installed",
    "nginx": "asks for its version; its master is started as the server's account",
    "ldconfig": "ctypes.util.find_library",
    "gcc": "ctypes.util.find_library",
    "ld": "ctypes.util.find_library",
}
"""Programs that may be root's, each with what for. launch.py is what becomes all others."""
ACCOUNTS = ("mysql", "postgres", "www-data", "proxy", "vcache", "varnish", "varnishlog", "redis", "_chrony")
ADDED = {
    MARK, "PYTHONPATH", "PYTHONSAFEPATH", "LUA_PATH", "LUA_CPATH", "PATH", "HOME", "LC_ALL", "OPENBLAS_NUM_THREADS",
    "POLARS_OOC_SPILL_DIR", "_RJEM_MALLOC_CONF", "MYSQL_HOME", "__DASK_PARENT_PID", "PYTHONHASHSEED",
    "PGAPPNAME", "PGOPTIONS", "PGPASSFILE", "PGPASSWORD",
}  # fmt: skip
"""What a process of ours has besides our environment; polars and dask put _RJEM_* and __DASK_* there,
for themselves. /proc shows a password in it to the driver's user alone, who has the password anyway."""
TOLD = re.compile(r"LOADFRAME_[A-Z_]+")
"""What a driver or a service of the study is told by (docs/driving-with-a-command.md, docs/service.md)."""


QUESTIONS = (["--version"], ["-V"], ["-v"], ["--help"], ["help"])
"""What an installed program is asked before anything is loaded; it answers and ends (docs/security.md)."""


@dataclass(frozen=True)
class Child:
    program: str
    uid: int
    why: str


@dataclass
class Children:
    """ours: names of the variables that the command itself has. theirs: programs of the study, by their base name,
    which keep their own folder and modules. users: declared besides the lease's user and the accounts of servers.
    roots: programs that may be root's here, besides AS_ROOT."""

    ours: frozenset[str]
    theirs: frozenset[str] = frozenset()
    users: frozenset[int] = frozenset()
    roots: frozenset[str] = frozenset()
    audited: int = 0
    of_others: int = 0
    faults: Counter[Child] = field(default_factory=Counter)
    _paths: Paths = field(default_factory=Paths)

    def take(self, call: Call) -> None:
        """An execve."""
        if call.name not in ("execve", "execveat") or call.failed or call.by.pid == 0:
            return
        at = 1 if call.name == "execveat" else 0
        program, argv, given = text(call.arguments[at]), texts(call.arguments[at + 1]), texts(call.arguments[at + 2])
        words = named(argv)
        name = os.path.basename(program)
        found = list(self._as_whom(call, name, argv))
        if OURS.match(call.by.program) is None:
            self.of_others += 1
        else:
            self.audited += 1
            found += [*self._modules(name, argv, given), *self._environment(given)]
            found += (
                [] if words.endswith("launch.py") else self._folder(call)
            )  # it becomes another user, and takes no module from there
        for why in found:
            self.faults[Child(words, call.by.uid, why)] += 1

    def _as_whom(self, call: Call, name: str, argv: list[str]) -> list[str]:
        uid = call.by.uid
        if uid == 0:
            declared = (
                name in AS_ROOT.keys() | self.roots
                or argv[-1:] in QUESTIONS
                or any(name.startswith(f"{known}3") for known in ("python",))
            )
            return [] if declared else ["runs as root, and is not declared to"]
        if uid in FREE or uid in self.users or uid in _accounts():
            return []
        return [f"runs as user {uid}, who is not declared"]

    def _modules(self, name: str, argv: list[str], given: list[str]) -> list[str]:
        if not name.startswith("python") or self.theirs & {os.path.basename(word) for word in argv[1:]}:
            return []
        options = []
        for word in argv[1:]:
            options.append(word)
            if not word.startswith("-") or word[1:] in ("c", "m"):
                break
        letters = "".join(word[1:] for word in options if word.startswith("-") and not word.startswith("--"))
        safe = any(line.partition("=")[0] == "PYTHONSAFEPATH" and line.partition("=")[2] for line in given)
        return [] if safe or set(letters) & {"P", "I"} else ["takes modules from its working folder"]

    def _environment(self, given: list[str]) -> list[str]:
        variables = dict(line.partition("=")[::2] for line in given)
        declared = self.ours | ADDED | {name for row in PASSED.values() for name in row}
        found = [
            f"has {name}, which is not declared"
            for name in sorted(variables.keys() - declared)
            if TOLD.fullmatch(name) is None
        ]
        for name in SEPARATORS.keys() & variables.keys():
            relative = [entry for entry in variables[name].split(SEPARATORS[name]) if not entry.startswith("/")]
            if relative and not (SEPARATORS[name] == ";" and relative == [""]):
                found.append(f"has {name} with {relative[0]!r} in it")
        return found

    def _folder(self, call: Call) -> list[str]:
        try:
            status = os.stat(f"/proc/{call.by.pid}/root{call.by.cwd}" if call.by.apart else call.by.cwd)
        except OSError:
            return []  # it has gone since
        if status.st_uid not in (0, call.by.uid) or stat.S_IMODE(status.st_mode) & stat.S_IWOTH:
            return [f"works in a folder of user {status.st_uid} ({stat.S_IMODE(status.st_mode):04o})"]
        return []


def _accounts() -> set[int]:
    return {entry.pw_uid for entry in pwd.getpwall() if entry.pw_name in ACCOUNTS}
