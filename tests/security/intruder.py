"""A second user: tries every process, folder, file, socket and name of a run, over and over, until its input ends.

    python -I -S intruder.py UID COMMAND_PID LOOT PLANTED FOLDER...

It is started by root, gives root up, and prints what it has managed as lines of JSON, and at its end how much it tried.
LOOT: a file of its own for all that it can read. PLANTED: a folder of its own whose files it puts wherever it can.
Lines of its input are ports on 127.0.0.1 to talk to. Standard library only; all is imported before root is given up.
"""

from __future__ import annotations

import contextlib
import ctypes
import encodings.idna  # noqa: F401 - what connecting to a name imports
import errno
import json
import os
import re
import resource
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

CLOSED = ("environ", "mem", "maps", "fd", "fdinfo", "cwd", "exe", "root", "io", "auxv", "stack", "syscall")
"""Of /proc/PID: what only the process's own user may see."""
INSIDE = (
    "step-00001", "step-00001/requests-0.log", "input", "sqlite", "sqlite/database.sqlite",
    "mariadb", "mariadb/run/mariadb.sock", "mariadb/workload.cnf", "mariadb/accounts.sql", "mariadb/error.log",
    "mariadb/data/ibdata1", "postgres", "postgres/run/.s.PGSQL.5432", "postgres/service.conf", "postgres/data/base",
    "shard1", "shard1/run/.s.PGSQL.5432", "loader/run/loader.sock", "loader/passwords", "nginx/nginx.conf",
    "nginx/run/status.sock", "varnish/work/_.secret", "varnish/run/varnish.sock", "squid/squid.conf", "squid/store",
    "origin-of-varnish/run/status.sock", "origin-of-squid/run/status.sock",
)  # fmt: skip
"""Names that a lease's folder may have, for who cannot list it."""
GUESSES = ("json.py", "argparse.py", "struct.py", "x.lua", "oltp_common.lua", "steps.jsonl.part", "lock", "study.json")
MOST_BYTES = 1 << 16
PTRACE_SEIZE = 0x4206
ASKED = (
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET /objects/0/0 HTTP/1.0\r\n\r\n",
    b"GET /squid-internal-mgr/config HTTP/1.0\r\n\r\n",
    b"GET /squid-internal-mgr/shutdown HTTP/1.0\r\n\r\n",
    b"PURGE / HTTP/1.0\r\n\r\n",
    b"PUT /objects/0/0 HTTP/1.0\r\nContent-Length: 3\r\n\r\nbad",
    b"auth 0\nparam.show\nstop\n",
    b"",
)


class Intruder:
    def __init__(self, command: int, loot: Path, planted: Path, folders: list[Path]) -> None:
        self._command = command
        self._loot = loot.open("ab", buffering=0)
        self._planted = planted
        self._folders = folders
        self._told: set[tuple[str, str]] = set()
        self._asked: set[tuple[int, bytes]] = set()
        self.tried: dict[str, int] = {}
        self.processes: set[int] = set()
        self.leases: set[str] = set()

    def tell(self, what: str, where: object) -> None:
        """Something was managed."""
        if (what, str(where)) not in self._told:
            self._told.add((what, str(where)))
            print(json.dumps({"managed": what, "where": str(where)}), flush=True)

    def attempt(self, what: str, where: object, action: Callable[[], object]) -> bool:
        self.tried[what] = self.tried.get(what, 0) + 1
        try:
            action()
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EACCES, errno.ENOENT, errno.ESRCH, errno.EROFS, errno.ENOTDIR):
                return False
            if error.errno in (errno.ENXIO, errno.ECONNREFUSED, errno.ELOOP, errno.EEXIST, errno.EINVAL, errno.ENOTSUP):
                return False
            if error.errno in (errno.EXDEV, errno.EISDIR, errno.EBUSY, errno.EIO, errno.ETXTBSY):
                return False
            raise
        self.tell(what, where)
        return True

    # --- processes ---

    def look_at_processes(self) -> None:
        for pid in self._descendants():
            self.processes.add(pid)
            with contextlib.suppress(OSError):
                self._keep(Path(f"/proc/{pid}/cmdline").read_bytes())
            for name in CLOSED:
                self.attempt(
                    f"proc {name}", self._name(pid), lambda path=Path(f"/proc/{pid}/{name}"): self._enter(path)
                )
            self.attempt("signal", self._name(pid), lambda pid=pid: os.kill(pid, signal.SIGTERM))
            self.attempt("trace", self._name(pid), lambda pid=pid: _trace(pid))
            self.attempt("renice", self._name(pid), lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 19))
            self.attempt("bind", self._name(pid), lambda pid=pid: os.sched_setaffinity(pid, {0}))
            self.attempt("limit", self._name(pid), lambda pid=pid: _limit(pid))

    def _descendants(self) -> list[int]:
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    text = (entry / "stat").read_text(errors="replace")
                    parents[int(entry.name)] = int(text[text.rindex(")") + 2 :].split()[1])
        found = {self._command} & parents.keys()
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def _name(self, pid: int) -> str:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/comm").read_text().strip()
        return str(pid)

    def _enter(self, path: Path) -> None:
        try:
            if path.name in ("fd", "fdinfo"):
                list(path.iterdir())
            elif path.name in ("cwd", "exe", "root"):
                path.readlink()
            else:
                with path.open("rb", buffering=0) as file:
                    content = file.read(4096)
                if not content:  # of maps and others, an empty answer is a refusal
                    raise PermissionError(errno.EACCES, "nothing")
                self._keep(content)
        except ProcessLookupError as error:
            raise PermissionError(errno.EACCES, "gone") from error

    # --- folders and files ---

    def look_at_folders(self) -> None:
        for top in self._folders:
            for path in _below(top):
                if re.fullmatch("loadframe-[0-9a-f]{12}", path.name):
                    self.leases.add(path.name)
                    for name in INSIDE:
                        self.attempt("reach", path / name, (path / name).lstat)
                self._try_entry(path, is_top=path in self._folders)

    def _try_entry(self, path: Path, *, is_top: bool) -> None:
        try:
            status = path.lstat()
        except OSError:
            return
        if status.st_uid == os.getuid():
            return
        if stat.S_ISREG(status.st_mode):
            with contextlib.suppress(OSError):
                self._keep(_read(path))
            self.attempt("write", path, lambda: os.close(os.open(path, os.O_WRONLY)))
        elif stat.S_ISSOCK(status.st_mode):
            self.attempt("connect", path, lambda: _connect(str(path)))
        elif stat.S_ISDIR(status.st_mode):
            sticky_for_all = status.st_mode & stat.S_ISVTX and status.st_mode & stat.S_IWOTH
            for name in () if is_top and sticky_for_all else GUESSES:
                if self.attempt("plant", path / name, lambda name=name: self._plant(path / name)):
                    continue
            if path.name.startswith("loadframe"):
                self.attempt("plant", path / "made", (path / "made").mkdir)
        self.attempt("rename", path, lambda: path.rename(path.with_name(f"{path.name}.taken")))
        self.attempt("chmod", path, lambda: path.chmod(0o777))
        if not stat.S_ISDIR(status.st_mode):
            self.attempt("remove", path, path.unlink)
            self.attempt("second name", path, lambda: os.link(path, path.with_name(f"{path.name}.link")))

    def _plant(self, path: Path) -> None:
        source = self._planted / path.name
        path.symlink_to(source) if source.exists() else path.mkdir()

    def _keep(self, content: bytes) -> None:
        self._loot.write(content[:MOST_BYTES].replace(b"\0", b" ") + b"\n")

    def plant_beside(self) -> None:
        """In folders for everybody: names that a run might use next."""
        for folder in (*self._folders, Path("/dev/shm")):
            with contextlib.suppress(OSError):
                mode = folder.stat().st_mode
                if mode & stat.S_IWOTH:
                    for lease in self.leases:
                        number = lease.partition("-")[2]
                        for name in (f"loadframe{number}-x.shm", f"{lease}.part", f"{lease}x"):
                            with contextlib.suppress(FileExistsError):
                                (folder / name).symlink_to(self._planted / "json.py")

    # --- sockets ---

    def look_at_sockets(self, ports: set[int]) -> None:
        with contextlib.suppress(OSError):
            for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
                path = line.split()[-1]
                if any(lease in path for lease in self.leases):
                    address = path.replace("@", "\0", 1) if path.startswith("@") else path
                    self.attempt("connect", path, lambda address=address: _connect(address))
        for port in ports:
            for asked in ASKED:
                if (port, asked) not in self._asked:
                    self._asked.add((port, asked))
                    answered = _ask(port, asked)
                    if answered is not None:
                        self.tried["port"] = self.tried.get("port", 0) + 1
                        self._keep(answered)
                        said = answered.split(b"\r\n")[0].split(b"\n")[0][:40].decode(errors="replace")
                        self.tell(f"port: {asked.split(b' HTTP')[0].decode()}", said)


def _trace(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def _limit(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))


def _below(top: Path) -> Iterator[Path]:
    yield top
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            yield Path(folder) / name


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(descriptor, MOST_BYTES)
    finally:
        os.close(descriptor)


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        with contextlib.suppress(TimeoutError):  # it is there, and busy
            connection.connect(address)


def _ask(port: int, asked: bytes) -> bytes | None:
    """What is answered within half a second; None where nobody listens."""
    answered = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection:
            connection.sendall(asked)
            while len(answered) < MOST_BYTES and (part := connection.recv(4096)):
                answered += part
    except TimeoutError:
        return answered
    except OSError:
        return answered or None
    return answered


def _new_ports(ports: set[int], left: list[bytes]) -> bool:
    """Take ports from the input; False at its end."""
    while select.select([0], [], [], 0)[0]:
        piece = os.read(0, 4096)
        if not piece:
            return False
        *lines, rest = (left.pop() + piece).split(b"\n")
        left.append(rest)
        ports.update(map(int, lines))
    return True


def main(arguments: list[str]) -> None:
    uid, command, loot, planted, *folders = arguments
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    intruder = Intruder(int(command), Path(loot), Path(planted), list(map(Path, folders)))
    ports: set[int] = set()
    left = [b""]
    print("ready", flush=True)
    while _new_ports(ports, left):
        intruder.look_at_processes()
        intruder.look_at_folders()
        intruder.look_at_sockets(ports)
        intruder.plant_beside()
        time.sleep(0.1)  # a run that has no CPU left would show less
    done = {"processes": len(intruder.processes), "leases": len(intruder.leases), "ports": len(ports)}
    print(json.dumps({"tried": intruder.tried, **done}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
