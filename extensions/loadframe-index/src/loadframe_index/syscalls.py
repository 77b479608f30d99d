"""System calls of change logs: fanotify(7), inotify(7), open_by_handle_at(2). OSError; ENOSYS where the C library lacks
one."""

import ctypes
import errno
import os
import select

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_INT, _UINT, _TEXT = ctypes.c_int, ctypes.c_uint, ctypes.c_char_p
_ARGUMENTS = {
    "fanotify_init": (_UINT, _UINT),
    "fanotify_mark": (_INT, _UINT, ctypes.c_uint64, _INT, _TEXT),
    "name_to_handle_at": (_INT, _TEXT, _TEXT, ctypes.POINTER(_INT), _INT),
    "open_by_handle_at": (_INT, _TEXT, _INT),
    "inotify_init1": (_INT,),
    "inotify_add_watch": (_INT, _TEXT, ctypes.c_uint32),
    "inotify_rm_watch": (_INT, _INT),
}
AT_FDCWD = -100


def _call(name: str, *arguments: object) -> int:
    function = getattr(_LIBRARY, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, f"the C library has no {name}")
    function.argtypes = _ARGUMENTS[name]
    result: int = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _path(descriptor: int) -> bytes:
    return f"/proc/self/fd/{descriptor}".encode()


def fanotify_init(flags: int) -> int:
    """The caller closes the descriptor."""
    return _call("fanotify_init", flags, os.O_RDONLY | os.O_CLOEXEC)


def fanotify_mark(group: int, flags: int, mask: int, directory: int) -> None:
    _call("fanotify_mark", group, flags, mask, AT_FDCWD, _path(directory))


def handle_of(directory: int) -> bytes:
    """A `struct file_handle`."""
    room = 128
    buffer = ctypes.create_string_buffer(room.to_bytes(4, "little") + bytes(4 + room), 8 + room)
    follow = 0x400  # AT_SYMLINK_FOLLOW: the link in /proc
    _call("name_to_handle_at", AT_FDCWD, _path(directory), buffer, ctypes.byref(ctypes.c_int()), follow)
    return buffer.raw[: 8 + int.from_bytes(buffer.raw[:4], "little")]


def open_by_handle(mount: int, handle: bytes) -> int:
    """An O_PATH descriptor, on the file system of `mount`. OSError: ESTALE, EPERM (CAP_DAC_READ_SEARCH)."""
    return _call("open_by_handle_at", mount, handle, os.O_PATH | os.O_CLOEXEC)


def inotify_init() -> int:
    """The caller closes the descriptor. OSError: EMFILE where the user has no more instances."""
    return _call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)


def inotify_add_watch(instance: int, directory: int, mask: int) -> int:
    """The same number for an object watched already. OSError: ENOSPC without further watches."""
    return _call("inotify_add_watch", instance, _path(directory), mask)


def inotify_rm_watch(instance: int, watch: int) -> None:
    """OSError: EINVAL where there is no such watch."""
    _call("inotify_rm_watch", instance, watch)


def readable(descriptor: int, timeout_s: float = 0.0) -> bool:
    """poll(2): any descriptor, however large."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))
