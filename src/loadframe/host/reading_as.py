"""Files whose names another process gave: read as the user of that process, so that the kernel decides on
permission."""

import errno
import os
import subprocess
from pathlib import Path

from loadframe.errors import CageError, MissingTool
from loadframe.formats.named_files import read_up_to
from loadframe.host.environment import NO_FOLDER
from loadframe.host.privilege import of_uid
from loadframe.host.processes import Allowance, spawn
from loadframe.system.kernel import process_status

PATIENCE_S = 5.0
"""A file that is not read by then counts as unreadable: reading a pipe waits for its writer."""


def user_of(pid: int) -> int:
    """The effective uid (proc_pid_status(5)); a folder in /proc may be root's in any case. Raises OSError."""
    return int(process_status(pid, "Uid")[1])


def read_as(user: int, path: Path, most: int) -> bytes:
    """A regular file's first bytes, one more than `most` if it has more, read with the rights of `user` if we are root
    and that user is not. Raises OSError if that fails."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, f"there is no file {path}")
    if not path.is_file():
        raise OSError(errno.EINVAL, f"{path} is not a regular file")
    if user == 0 or os.geteuid() != 0:
        return read_up_to(path, most)
    command = ["head", "-c", str(most + 1), "--", str(path.absolute())]
    try:
        head = spawn(command, Allowance(of_uid(user)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=NO_FOLDER)
    except (CageError, MissingTool) as error:
        raise OSError(errno.EACCES, error.fact) from error
    with head:
        try:
            data, _ = head.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            head.kill()
            raise TimeoutError(errno.ETIMEDOUT, f"{path} was not read within {PATIENCE_S:g} s") from error
    if head.returncode != 0:
        raise OSError(errno.EACCES, f"user {user} cannot read {path}")
    return data
