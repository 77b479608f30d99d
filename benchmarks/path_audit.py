"""Whether another user could change what a path of root's leads to: of each call that names a path (file_calls.py),
while the folders on its way are there.

A folder is another's where neither root owns it nor keeps others from writing to it; in a sticky one, what belongs to
root is root's (rename(2)). A call by path fails the audit where a folder on the way is another's, or where it would
follow a link, wait at a FIFO or empty a second name of a file as the last word of the path.
What only looks (stat, access, readlink) is counted by itself: it changes and reads nothing, and what is done upon its
answer is a call of its own.
"""

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from file_calls import Call, Process, held, text

AT = "AT_FDCWD"
MOST_LINKS = 40
MAGIC = re.compile(r"/proc/(?P<pid>\d+)(?:/task/\d+)?/(?:root|cwd|exe|fd/\d+|map_files/[^/]+)")
"""Links that lead where the process says (proc(5))."""
LOOKS = {
    "stat", "lstat", "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
    "statfs", "getxattr", "lgetxattr", "listxattr", "llistxattr", "name_to_handle_at", "inotify_add_watch",
}  # fmt: skip
STAYS = {"lstat", "lchown", "lgetxattr", "llistxattr", "lsetxattr", "lremovexattr", "readlink", "unlink", "rmdir",
         "rename", "mkdir", "mknod", "symlink", "link", "readlinkat", "unlinkat", "renameat", "renameat2", "mkdirat",
         "mknodat", "symlinkat"}  # fmt: skip
"""Calls that follow no link as the last word of a path."""
PATHS = {  # where the arguments are: of each path, its folder's descriptor (None: no such argument) and itself
    **dict.fromkeys(("open", "creat", "stat", "lstat", "access", "readlink", "unlink", "rmdir", "mkdir", "mknod",
                     "chmod", "chown", "lchown", "chdir", "chroot", "truncate", "utime", "utimes", "statfs", "getxattr",
                     "lgetxattr", "listxattr", "llistxattr", "setxattr", "lsetxattr", "removexattr", "lremovexattr",
                     "execve", "umount2", "swapon", "acct", "uselib"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "readlinkat", "unlinkat",
                     "mkdirat", "mknodat", "fchmodat", "fchmodat2", "fchownat", "utimensat", "futimesat", "execveat",
                     "name_to_handle_at"), ((0, 1),)),
    **dict.fromkeys(("rename", "link"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    "inotify_add_watch": ((None, 1),),
    "mount": ((None, 1),),
}  # fmt: skip
ADDRESS = re.compile(r'sun_path="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Fault:
    program: str
    call: str
    flags: str
    path: str
    why: str


@dataclass
class Paths:
    """What was found. excepted: reasons by a pattern of paths."""

    excepted: dict[str, str] = field(default_factory=dict)
    audited: int = 0
    looked: Counter[Fault] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    _last: dict[str, os.stat_result] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        if call.by.uid != 0:
            return
        for start, path in _named(call):
            if not path:
                continue  # AT_EMPTY_PATH: the descriptor itself
            self.audited += 1
            why = self.weakness(call, start, path)
            if why is None:
                continue
            fault = Fault(call.by.program, call.name, "|".join(sorted(_flags(call))), os.path.join(start, path), why)
            reasons = [why for pattern, why in self.excepted.items() if re.fullmatch(pattern, fault.path)]
            if call.name in LOOKS:
                self.looked[fault] += 1
            elif reasons:
                self.allowed[reasons[0]] += 1
            else:
                self.faults[fault] += 1

    def weakness(self, call: Call, start: str, path: str) -> str | None:
        """In words; None where only root can change what the path leads to."""
        at, left = ("/" if path.startswith("/") else start), _words(path)
        links = 0
        while left:
            word = left.pop(0)
            if word == "..":
                at = os.path.dirname(at)
                continue
            last = not left
            whole = os.path.join(at, word)
            stays = last and _stays(call) and not path.endswith("/")
            if at.startswith("/proc/"):
                if (magic := MAGIC.fullmatch(whole)) is not None and not stays:
                    owner = self._status(call.by, f"/proc/{magic['pid']}")
                    if owner is not None and owner.st_uid != 0:
                        return f"{whole} leads where a process of user {owner.st_uid} says"
                    return None
                at = whole
                continue
            another = self._anothers(call.by, at, word)
            if another is not None:
                if not last:
                    return f"{another}, and {word!r} in it is on the way"
                return self._leaf(call, another)
            if stays:
                return None
            status = self._status(call.by, whole)
            if status is not None and stat.S_ISLNK(status.st_mode) and (links := links + 1) <= MOST_LINKS:
                try:
                    to = os.readlink(_seen_by(call.by, whole))
                except OSError:  # it was a link
                    return None
                at, left = ("/" if to.startswith("/") else at), _words(to) + left
                continue
            if status is None and call.failed:
                return None  # nothing of this name, where only root could put it
            at = whole
        return None

    def _leaf(self, call: Call, another: str) -> str | None:
        if call.name in LOOKS:
            return None if _stays(call) else f"{another}, and a link there is followed"
        if not _stays(call):
            return f"{another}, and a link there is followed"
        flags = _flags(call)
        if call.name.startswith("open") and not flags & {"O_EXCL", "O_DIRECTORY", "O_PATH"}:
            if "O_TRUNC" in flags:
                return f"{another}, and a second name of a file there is emptied"
            if "O_NONBLOCK" not in flags:
                return f"{another}, and a FIFO there is waited for"
        return None

    def _anothers(self, by: Process, folder: str, word: str) -> str | None:
        """Why another user can change what this word leads to, in this folder."""
        status = self._status(by, folder)
        if status is None:
            self.unseen[folder] += 1
            return None
        if not _roots(status.st_uid):
            return f"{folder} belongs to user {status.st_uid}"
        mode = stat.S_IMODE(status.st_mode)
        others = mode & stat.S_IWOTH or (
            mode & stat.S_IWGRP and (status.st_gid != 0 or _has_list(_seen_by(by, folder)))
        )
        if not others:
            return None
        if not mode & stat.S_ISVTX:
            return f"{folder} can be written by others ({mode:04o}, group {status.st_gid})"
        inside = self._status(by, os.path.join(folder, word))
        if inside is None:
            return f"{folder} can be written by others, and has no {word!r} of root's"
        return None if _roots(inside.st_uid) else f"{folder}/{word} belongs to user {inside.st_uid}"

    def _status(self, by: Process, path: str) -> os.stat_result | None:
        """As it is now; of what has gone since, as it was last seen."""
        key = f"{by.pid if by.apart else ''}:{path}"
        with contextlib.suppress(OSError):
            self._last[key] = os.lstat(_seen_by(by, path))
        if key not in self._last and by.apart:  # as it was before the process put a folder of its own over it
            with contextlib.suppress(OSError):
                return os.lstat(path)
        return self._last.get(key)


def _seen_by(by: Process, path: str) -> str:
    return f"/proc/{by.pid}/root{path}" if by.apart else path


def _named(call: Call) -> Iterator[tuple[str, str]]:
    """The paths of a call, each with the folder in which it begins."""
    if call.name in ("bind", "connect"):
        match = ADDRESS.search(" ".join(call.arguments))
        if match is not None:
            yield call.by.cwd, text(f'"{match[1]}"')
        return
    for folder, path in PATHS.get(call.name, ()):
        if path >= len(call.arguments) or not call.arguments[path].startswith('"'):
            continue
        start = call.by.cwd if folder is None else held(call.arguments[folder]) or call.by.cwd
        yield start, text(call.arguments[path])


def _flags(call: Call) -> set[str]:
    return set(re.findall(r"[A-Z][A-Z_]+", " ".join(word for word in call.arguments if not word.startswith(('"', AT)))))


def _stays(call: Call) -> bool:
    """Whether it follows no link as its last word."""
    if call.name in STAYS:
        return True
    flags = _flags(call)
    if call.name == "linkat":
        return "AT_SYMLINK_FOLLOW" not in flags
    if call.name.startswith("open"):
        return "O_NOFOLLOW" in flags or {"O_CREAT", "O_EXCL"} <= flags or "RESOLVE_NO_SYMLINKS" in flags
    return "AT_SYMLINK_NOFOLLOW" in flags


def _words(path: str) -> list[str]:
    return [word for word in path.split("/") if word not in ("", ".")]


def _roots(uid: int) -> bool:
    """Root, or one of all users that a user namespace has no number for, as its own root (user_namespaces(7))."""
    return uid == 0 or (uid == OVERFLOW and MAPPED < 2**32 - 1)


def _has_list(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError:
        return False


OVERFLOW = int(Path("/proc/sys/kernel/overflowuid").read_text())
MAPPED = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())


def shape(path: str) -> str:
    """Without what differs from run to run."""
    path = re.sub(r"[0-9a-f]{12,}|[a-z0-9_]{8}(?=/|$)(?<=[0-9_])", "*", path)
    return re.sub(r"\d+", "#", path)
