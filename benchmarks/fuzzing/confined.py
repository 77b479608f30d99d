"""A process that can do no harm: no network but loopback, no other processes, nothing writable but one folder.

What is fuzzed are leases and changes, which tell a program to end processes, to remove folders and to run commands.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_NAMESPACES = 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
"""Mounts, pids, network, System V IPC, host name: sched.h."""
NEW_USER = 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
INTERFACE_UP = struct.pack("16sH14s", b"lo", 1 | 64, b"")
SIOCSIFFLAGS = 0x8914
_libc = ctypes.CDLL(None, use_errno=True)


def confine(folder: Path) -> bool:
    """Confine the children of this process, the first of which must be its only one: fork right after it. folder: what
    stays writable, in memory. False, and nothing is done, where the kernel does not let us."""
    user, group = os.getuid(), os.getgid()
    if not any(line.split(" ")[4] == "/" for line in Path("/proc/self/mountinfo").read_text().splitlines()):
        return False  # a chroot: its root is no mount, and cannot be kept from being one of everybody's
    if _libc.unshare(NEW_NAMESPACES | (0 if user == 0 else NEW_USER)) != 0:
        return False
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    _mount("tmpfs", str(folder), "tmpfs", 0, "size=1g,mode=755")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = line.split(" ")[4]
        if place != str(folder):
            with contextlib.suppress(OSError):  # one that lies below another mount
                _mount(None, place, None, REMOUNT | BIND | READ_ONLY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, INTERFACE_UP)
    return True


def first_of_its_own() -> None:
    """To be called in the child: /proc shows its own processes."""
    _mount("proc", "/proc", "proc", READ_ONLY)


def is_confined() -> bool:
    """Whether this process is the first of its own namespace of pids, with a /proc that it cannot write."""
    return os.getpid() == 1 and not os.access("/proc/sys/kernel/hostname", os.W_OK)


def _mount(source: str | None, place: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, place, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)
