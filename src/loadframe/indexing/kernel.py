"""The system calls of change logs that Python does not have: fanotify(7), inotify(7), open_by_handle_at(2).

Each raises OSError with the number that the kernel gave; ENOSYS where the C library does not have the call.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select

_LIBRARY = ctypes.CDLL(None, use_errno=True)

AT_FDCWD = -100


def _call(name: str, *arguments: object) -> int:
    function = getattr(_LIBRARY, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, f"the C library has no {name}")
    result: int = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def fanotify_init(flags: int) -> int:
    """A descriptor of a new group; the caller closes it. OSError."""
    return _call("fanotify_init", ctypes.c_uint(flags), ctypes.c_uint(os.O_RDONLY | os.O_CLOEXEC))


def fanotify_mark(group: int, flags: int, mask: int, directory: int) -> None:
    """Mark what this descriptor is of. OSError."""
    path = f"/proc/self/fd/{directory}".encode()
    _call(
        "fanotify_mark",
        ctypes.c_int(group),
        ctypes.c_uint(flags),
        ctypes.c_uint64(mask),
        ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(path),
    )


def handle_of(directory: int) -> bytes:
    """The handle of what this descriptor is of, as a `struct file_handle`. OSError."""
    room = 128
    buffer = ctypes.create_string_buffer(room.to_bytes(4, "little") + bytes(4 + room), 8 + room)
    mount = ctypes.c_int()
    path = f"/proc/self/fd/{directory}".encode()
    follow = 0x400  # AT_SYMLINK_FOLLOW: the link in /proc
    _call(
        "name_to_handle_at",
        ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(path),
        buffer,
        ctypes.byref(mount),
        ctypes.c_int(follow),
    )
    return buffer.raw[: 8 + int.from_bytes(buffer.raw[:4], "little")]


def open_by_handle(mount: int, handle: bytes) -> int:
    """A descriptor (O_PATH) of what has this `struct file_handle` on the file system that `mount` is on. OSError:
    ESTALE where it is gone, EPERM without CAP_DAC_READ_SEARCH."""
    flags = os.O_PATH | os.O_CLOEXEC
    return _call("open_by_handle_at", ctypes.c_int(mount), ctypes.c_char_p(handle), ctypes.c_int(flags))


def inotify_init() -> int:
    """A descriptor of a new instance; the caller closes it. OSError: EMFILE where the user has no more instances."""
    return _call("inotify_init1", ctypes.c_int(os.O_CLOEXEC | os.O_NONBLOCK))


def inotify_add_watch(instance: int, directory: int, mask: int) -> int:
    """The number of the watch of what this descriptor is of; that of before where there is one. OSError: ENOSPC where
    the user has no more watches."""
    path = f"/proc/self/fd/{directory}".encode()
    return _call("inotify_add_watch", ctypes.c_int(instance), ctypes.c_char_p(path), ctypes.c_uint32(mask))


def inotify_rm_watch(instance: int, watch: int) -> None:
    """OSError: EINVAL where there is no such watch."""
    _call("inotify_rm_watch", ctypes.c_int(instance), ctypes.c_int(watch))


def readable(descriptor: int, timeout_s: float = 0.0) -> bool:
    """Whether there is something to read, at the latest after this time (poll(2): any descriptor, however large)."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))
