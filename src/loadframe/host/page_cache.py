"""Drop files from the kernel's page cache: the cold state of a server that reads them."""

import os
from pathlib import Path


def drop(folder: Path) -> None:
    """Write out all files below the folder and drop their pages from the page cache (posix_fadvise(2), DONTNEED). Pages
    that a process has mapped stay. The next reader's control group is charged for them."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            forget(path)


def forget(path: Path) -> None:
    """As `drop`, for one file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)  # unwritten pages would stay
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
