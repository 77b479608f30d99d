"""Whether another user could replace a folder of ours by theirs."""

import grp
import os
import pwd
import stat
from collections import deque
from functools import cache
from pathlib import Path

from loadframe.system.kernel import kernel_text

MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""
EVERY_USER = 2**32 - 1
ACCESS_LIST, DEFAULT_LIST = "system.posix_acl_access", "system.posix_acl_default"
"""Extended attributes (acl(5)): who else has access; of a folder, the default for what is made in it."""


def weak_point(path: Path) -> str | None:
    """Why another user could replace what is, or will be, at this path; None if none can: every folder and every link
    on the way must belong to us or to root. What others may write to is passed only if it is sticky, so that they
    cannot rename what is not theirs (rename(2)). What does not exist yet will be ours. OSError."""
    at, left, links = Path("/"), deque(path.absolute().parts[1:]), 0
    status = os.lstat(at)
    while left:
        if others_write(status, at) and not status.st_mode & stat.S_ISVTX:
            return f"{at} can be written by other users (mode {stat.S_IMODE(status.st_mode):04o})"
        word = left.popleft()
        at = at.parent if word == ".." else at / word
        try:
            status = os.lstat(at)
        except FileNotFoundError:
            return None
        if status.st_uid not in (0, os.geteuid()) and not _unmapped(status.st_uid):
            return f"{at} belongs to {user(status.st_uid)}"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                return f"{path} has too many links on its way"
            to = at.readlink()
            left.extendleft(reversed(to.parts[1:] if to.is_absolute() else to.parts))
            at = Path("/") if to.is_absolute() else at.parent
            status = os.lstat(at)
    return None


def changeable(path: Path) -> str | None:
    """Why another user could change or replace this file, or why that cannot be seen; None if none can."""
    try:
        if (weak := weak_point(path)) is not None or not path.is_file():
            return weak
        status = path.stat()
        writable = others_write(status, path.resolve())
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path} can be written by other users (mode {stat.S_IMODE(status.st_mode):04o})" if writable else None


def others_write(status: os.stat_result, path: Path) -> bool:
    """A group without other members is its owner's own (umask 002); with an access list (acl(5)) the group's bits are
    those of everyone on it."""
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        return not own_group(status.st_gid) or bool(os.getxattr(path, ACCESS_LIST, follow_symlinks=False))
    except OSError:  # no list, or a file system without
        return False


def user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


@cache
def _unmapped(uid: int) -> bool:
    """Stands for all users without a number in the user namespace, among them perhaps the machine's root
    (user_namespaces(7)). From within they cannot be distinguished."""
    overflow = int(kernel_text(Path("/proc/sys/kernel/overflowuid")))
    mapped = sum(int(line.split()[2]) for line in kernel_text(Path("/proc/self/uid_map")).splitlines())
    return uid == overflow and mapped < EVERY_USER


@cache
def own_group(gid: int) -> bool:
    """Only we and root are members, and it has root's name or ours."""
    try:
        group, us = grp.getgrgid(gid), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name in ("root", us) and set(group.gr_mem) <= {"root", us}
