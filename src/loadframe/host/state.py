"""The state directory, which must outlive a killed command and a power failure: $LOADFRAME_STATE, else
$XDG_STATE_HOME/loadframe, else ~/.local/state/loadframe. Loadframe acts on its content: it ends processes, removes
files, runs commands. So it is ours alone (0700), on a path that no other user can change, and only regular files of
ours are read from it. What this version cannot use is left as it is."""

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from loadframe.errors import CageError, UserError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.said import PATH_REMEDY, why_no_text
from loadframe.host.identity import Identity
from loadframe.system.files import Folder, Whose
from loadframe.system.trees import closing
from loadframe.system.trust import others_write, user, weak_point

ALIVE = ".alive"
WRITING = "writing.lock"
MOST_BYTES = 1 << 20
LOCKED_WITHIN_S = 600.0
"""Longer than a server's restart takes while a lock is held (kinds/config_file.py)."""
OURS = {"leases", "changes", "faults", "forecast-scores.jsonl"}


class Damaged(Exception):  # noqa: N818 - it is no error of the command that meets it
    """Why a file of the state directory cannot be used."""


def state_directory() -> Path:
    """CageError if it cannot be written, or another user could write to it."""
    own, of_all = os.environ.get("LOADFRAME_STATE"), os.environ.get("XDG_STATE_HOME")
    try:
        path = Path(own or f"{of_all or Path.home() / '.local/state'}/loadframe").absolute()
    except RuntimeError as error:
        raise CageError(
            "Loadframe cannot keep its state: this user has no home folder (neither HOME nor a line in /etc/passwd)",
            remedy="Set LOADFRAME_STATE to a folder of your own.",
        ) from error
    return private_folder(path, "keep its state")


def scratch_directory() -> Path:
    """$LOADFRAME_SCRATCH, else /var/tmp. No other user can replace folders in it. CageError."""
    path = Path(os.environ.get("LOADFRAME_SCRATCH") or "/var/tmp").absolute()
    remedy = "Set LOADFRAME_SCRATCH to a folder that can be written."
    weak, _ = _made(path, path / "ours", 0o755, "put temporary data", remedy)
    if weak is not None:
        raise CageError(
            f"Loadframe does not put temporary data in {path}: {weak}, so other users could replace Loadframe's files",
            remedy="Set LOADFRAME_SCRATCH to a folder whose whole path only you and root may write to, or that is "
            "sticky.",
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise CageError(f"Loadframe cannot put temporary data in {path}: not writable", remedy=remedy)
    return path


def _made(path: Path, place: Path, mode: int, purpose: str, remedy: str) -> tuple[str | None, os.stat_result | None]:
    """What on the way to the place another user could change, or None, and its status, if it exists. CageError, also
    for a path that no record could name."""
    if (why := why_no_text(path)) is not None:
        raise CageError(f"Loadframe cannot {purpose} there: {why}", remedy=PATH_REMEDY)
    try:
        weak = weak_point(place)
        if weak is None:
            for folder in (*reversed(path.parents), path):
                if not folder.exists():
                    folder.mkdir(mode if folder == path else 0o755, exist_ok=True)
            if not path.is_dir():
                raise NotADirectoryError(20, "Not a directory")
            weak = weak_point(place)
        return weak, path.lstat() if weak is None or os.path.lexists(path) else None
    except OSError as error:
        raise CageError(f"Loadframe cannot {purpose} in {path}: {error.strerror}", remedy=remedy) from error


def private_folder(path: Path, purpose: str) -> Path:
    """A folder of ours that others may read is closed to them. purpose: for messages. CageError if it is a link,
    another user's, or others may write to it."""
    remedy = "Set LOADFRAME_STATE to a folder of your own"
    weak, status = _made(path, path, 0o700, purpose, f"{remedy}.")
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise CageError(
            f"Loadframe does not {purpose} in {path}: it is a link to {path.readlink()}", remedy=f"{remedy}."
        )
    what_to_do = f"{remedy}, whose whole path only you and root may write to."
    if weak is None and status is not None and status.st_uid != os.geteuid():
        weak = f"{path} belongs to {user(status.st_uid)}"
    elif weak is None and status is not None and others_write(status, path):
        weak = f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
        what_to_do = f"Check what is in it, then `chmod 700 {path}`; or set LOADFRAME_STATE to another folder of yours."
    if weak is not None or status is None:
        raise CageError(
            f"Loadframe does not {purpose} in {path}: {weak}, and Loadframe acts on what is in it", remedy=what_to_do
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise CageError(f"Loadframe cannot {purpose} in {path}: not writable", remedy=f"{remedy} that can be written.")
    # a user's home folder, or /etc, is not closed: only one in which nothing but Loadframe keeps something is
    named_so = path.name in ("leases", "changes", "loadframe")
    if status.st_mode & 0o077 and (named_so or OURS.issuperset(entry.name for entry in path.iterdir())):
        with suppress(OSError):  # a file system without modes; that others cannot write was checked before
            path.chmod(0o700)
    return path


def read_file(file: Path, most_bytes: int = MOST_BYTES) -> str:
    """FileNotFoundError; Damaged if it is no regular file of ours, too large, or not UTF-8."""
    try:
        data = _held(file.parent).read(file.name, most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"it cannot be read: {error.strerror}") from error
    except CageError as refusal:
        raise Damaged(refusal.fact) from refusal
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Damaged("it is not text in UTF-8") from error


def write_durably(file: Path, text: str) -> None:
    """Write a file whole or not at all, also when the power fails; see `remove_torn`. OSError, CageError."""
    _held(file.parent).replace(file.name, text.encode(), mode=0o600)


def remove_torn(folder: Path) -> None:
    def alone() -> list[Path]:
        return [file for file in folder.glob(f"*{ALIVE}") if not file.with_suffix(".json").exists()]

    if not folder.is_dir():
        return
    held_folder = _held(folder)
    held_folder.remove_torn()
    if alone():
        with locked(folder / WRITING):  # so none of these is being made now
            for file in alone():
                if not file.is_dir() and held(file) is not True:
                    held_folder.remove(file.name)


def _held(folder: Path) -> Folder:
    return Folder(folder, Whose.OURS, CageError)


@contextmanager
def writing(place: object, refusal: type[UserError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(
            f"Cannot write {place}: {error.strerror}", remedy="Free some disk space, or set LOADFRAME_STATE."
        ) from error


@contextmanager
def locked(path: Path, within_s: float = LOCKED_WITHIN_S) -> Iterator[None]:
    """Let one process at a time into this block, by a file for this alone. CageError if it is no file of ours, or
    another process keeps the lock for longer than within_s."""
    with closing(_open_lock(path)) as descriptor:
        _lock(descriptor, path, within_s)
        yield


def _open_lock(path: Path, flags: int = os.O_CREAT) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = error.strerror or "it cannot be opened"
    else:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
        why = "it is not a regular file of this user"
    raise CageError(f"Cannot use the lock {path}: {why}", remedy="Remove it: Loadframe makes it again.")


def _lock(descriptor: int, path: Path, within_s: float) -> None:
    until, wait_s = time.monotonic() + within_s, 0.001
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise CageError(
                    f"Another process has held {path} for {within_s:.0f} s",
                    remedy=f"`fuser -v {path}` shows it; end it, or let it continue.",
                ) from None
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, 0.05)
        except OSError as error:
            raise CageError(
                f"{path} cannot be locked: {error.strerror}",
                remedy="Set LOADFRAME_STATE to a folder on a file system with locks.",
            ) from error
        else:
            return


class Life:
    """A sign that its owner lives, which every process of this machine can read, also in another PID namespace that
    shares the folder: a lock that the kernel releases when the owner ends. Its children and forks do not hold it."""

    def __init__(self, record: Path) -> None:
        """record: the file to which it belongs. Raises CageError, OSError."""
        self._file = record.with_suffix(ALIVE)
        with locked(record.parent / WRITING):  # a sign without a file is removed, and this one is not locked yet
            self._descriptor = _open_lock(self._file, os.O_CREAT | os.O_EXCL)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        _lives.add(self)

    def end(self) -> None:
        if self in _lives:
            self._file.unlink(missing_ok=True)
            self.forget()

    def forget(self) -> None:
        _lives.discard(self)
        os.close(self._descriptor)


_lives: set[Life] = set()


def _forget_all() -> None:
    for life in list(_lives):
        life.forget()


os.register_at_fork(after_in_child=_forget_all)


def held(file: Path) -> bool | None:
    """None if there is no sign of life."""
    try:
        descriptor = _open_lock(file.with_suffix(ALIVE), 0)
    except (FileNotFoundError, CageError):
        return None
    with closing(descriptor):
        try:  # shared: two readers must not take each other for the owner
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return None
    return False


MOST_PID = 2**22
"""PID_MAX_LIMIT of 64-bit kernels (linux/threads.h)."""
MOST_TICKS = 2**63 - 1


def read_record(file: Path, kind: str, newest: int) -> tuple[int, dict[str, Any]]:
    """Version and fields of a record "loadframe.KIND/VERSION". FileNotFoundError, Damaged."""
    try:
        data = parse_json(read_file(file))
    except JsonError as error:
        raise Damaged(f"it is not JSON that can be used: {error}") from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    name, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    if name != f"loadframe.{kind}" or not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Damaged(f"its schema is not loadframe.{kind}/1 to /{newest}")
    if not 1 <= int(number) <= newest:
        raise Damaged(f"it is of version {int(number)}, and this Loadframe knows versions up to {newest}")
    return int(number), data


def check_keys(data: object, needed: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Damaged(f"{str(data)[:40]!r} stands where an object belongs")
    if missing := sorted(needed - data.keys()):
        raise Damaged(f"{missing[0]!r} is missing")
    if unknown := sorted(data.keys() - needed - optional):
        raise Damaged(f"{unknown[0][:40]!r} is not a key that this version knows")
    return data


def text_of(data: Mapping[str, Any], key: str) -> str:
    if not isinstance(value := data[key], str):
        raise Damaged(f"{key!r} is not text")
    return value


def folder_of(data: Mapping[str, Any], key: str) -> Path:
    path = Path(text_of(data, key))
    if not path.is_absolute() or ".." in path.parts:
        raise Damaged(f"{key!r} is not an absolute path")
    return path


def list_of(data: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(value := data.get(key, []), list):
        raise Damaged(f"{key!r} is not a list")
    return value


def texts_of(data: Mapping[str, Any], key: str) -> dict[str, str]:
    if not isinstance(value := data[key], dict):
        raise Damaged(f"{key!r} is not an object")
    return {name: text_of(value, name) for name in value}


def identity_of(data: object) -> Identity:
    fields = check_keys(data, {"pid", "started_ticks"}, {"namespace"})
    pid, ticks = fields["pid"], fields["started_ticks"]
    for value, most in ((pid, MOST_PID), (ticks, MOST_TICKS)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise Damaged("a process has no pid and start as processes have them")
    if pid == 0:
        raise Damaged("a process has the pid 0")
    return Identity(pid, ticks, text_of(fields, "namespace") if "namespace" in fields else "")
