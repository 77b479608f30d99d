"""Let the kernel forget what it has in memory of files: the cold state of a server that reads them."""

import os
from pathlib import Path


def drop(folder: Path) -> None:
    """Write out all files below the folder and drop their pages from the page cache (posix_fadvise(2), DONTNEED). Pages
    that a process has mapped stay. Whoever reads them next has them, and they count for his control group."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            forget(path)


def forget(path: Path) -> None:
    """The same for one file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)  # pages that are not written yet would stay
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
