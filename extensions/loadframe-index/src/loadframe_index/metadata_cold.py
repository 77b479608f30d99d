"""Make the kernel forget a tree: names and inodes of all file systems (drop_caches), and the metadata blocks of the
tree's disk (BLKFLSBUF). Contents stay in memory, unless the file system is on no disk, keeps its metadata otherwise
(btrfs), or the kernel refuses: then the whole page cache goes, and a database that is a file is read again."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from loadframe.errors import StudyError
from loadframe.host.leases import filesystem

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
NAMES_AND_INODES, ALL = "2", "3"
"""Values of drop_caches (proc_sys_vm(5))."""
BLKFLSBUF = 0x1261
"""<linux/fs.h>: write and forget what is in memory of a block device itself. Needs CAP_SYS_ADMIN."""
IN_BLOCKS_OF_THE_DISK = frozenset({"ext2", "ext3", "ext4", "xfs"})
"""File systems whose metadata lie in the block device's own cache, or (xfs) go with the inodes."""
FORGOTTEN = (
    "With cold = true the kernel forgot the names and inodes of all file systems{more} before each step: other "
    "programs on this machine looked theirs up again meanwhile."
)
SQLITE_FILES = ("", "-wal", "-shm", "-journal")
PIECE_BYTES, MOST_BYTES = 1 << 20, 1 << 30
"""Bytes of a file that is read again: at a time, and at most."""


def forget(tree: Path, database: str | None = None) -> str:
    """Returns a sentence on what else was forgotten. database: SQLite's file, read again. Raises StudyError."""
    device = _disk_of(tree) if filesystem(tree) in IN_BLOCKS_OF_THE_DISK else None
    try:
        os.sync()  # unwritten data would stay
        DROP_CACHES.write_text(ALL if device is None else NAMES_AND_INODES, encoding="ascii")
        contents = device is None or not _flushed(device)
        if device is not None and contents:
            DROP_CACHES.write_text(ALL, encoding="ascii")
    except OSError as error:
        raise StudyError(
            f"workload.options.cold = true: the kernel does not forget {tree}: {error.strerror}.",
            remedy="Run as root, outside of a container; or omit it.",
        ) from error
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # the driver's user may have put a link there
    for suffix in SQLITE_FILES if database and contents else ():
        # journals come and go
        with suppress(OSError), os.fdopen(os.open(f"{database}{suffix}", flags), "rb", buffering=0) as file:
            left = MOST_BYTES
            while left > 0 and (piece := len(file.read(PIECE_BYTES) or b"")):
                left -= piece
    return FORGOTTEN.format(more=", and the contents of files," if contents else "")


def _disk_of(tree: Path) -> Path | None:
    number = tree.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/uevent")
    with suppress(OSError):
        text = entry.read_text(encoding="utf-8", errors="replace")
        name = dict(line.partition("=")[::2] for line in text.splitlines()).get("DEVNAME", "")
        device = Path("/dev") / name
        if name and device.is_block_device() and device.stat().st_rdev == number:
            return device
    return None


def _flushed(device: Path) -> bool:
    """False if not permitted: a container's root may not do that, and may drop all caches."""
    try:
        opened = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(opened, BLKFLSBUF, 0)
        finally:
            os.close(opened)
    except PermissionError:
        return False
    return True
