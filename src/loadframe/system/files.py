"""The door to the file system: a folder held by its descriptor. Whoever opens one says whose it is.

Everything in it is read, written and removed by names below it, following no link: each part of a name is opened below
the part before (openat(2)) and none may be a link; only regular files are read, up to the given size; a whole file is
written under a new random name, and then renamed; modes and owners are set on descriptors. Swapping the folder's path
for another meanwhile changes nothing."""

import errno
import fcntl
import os
import re
import stat
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path

from loadframe.errors import RunError, UserError
from loadframe.formats.said import PATH_REMEDY, why_no_text
from loadframe.system.kernel import process_status
from loadframe.system.trees import ANY, FOLDER, Link, closing, link_of, remove_below, walked
from loadframe.system.trust import others_write, user, weak_point

_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FOLDER_MODE, FILE_MODE = 0o755, 0o644
PIECE_BYTES, MOST_NAMES = 1 << 20, 100_000
PART = re.compile(r"\..+\.[0-9a-f]{16}\.part")
"""Of a file while it is written."""
NO_LINKS = "Loadframe follows no links inside a folder. Put the file itself there, or omit it."
KINDS = {
    stat.S_ISLNK: "a link",
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


class Whose(Enum):
    """Who may change a folder, and what is on the way to it."""

    OURS = auto()
    """Only we and root, on the whole way to it, else it is refused. For what is acted on."""
    NAMED = auto()
    """The user named it. Links on the way to it are followed, as the user meant them; by root, none of another user's.
    Strangers may write in it."""
    ANOTHERS = auto()
    """Another user may write there, or on the way to it: no link of that user's is followed."""


class Folder:
    """Methods raise OSError if the system refuses, `refusal` for what Loadframe refuses. Names are below it."""

    def __init__(self, path: Path, whose: Whose, refusal: type[UserError] = RunError, *, what: str = "folder") -> None:
        """what: the folder, in messages."""
        self.path = path
        self.whose = whose
        self._refusal = refusal
        self._what = what
        self._descriptor = -1

    def open(self) -> None:
        if self._descriptor < 0:
            self._check_text()
            try:
                self._hold(self._opened())
            except (FileNotFoundError, NotADirectoryError):
                raise self._refusal(f"there is no {self._what} {self.path}", remedy="Check the path.") from None
            except (OSError, ValueError) as error:
                raise self._refusal(
                    f"the {self._what} {self.path} cannot be opened: {getattr(error, 'strerror', None) or error}",
                    remedy="Check the path.",
                ) from error

    def _opened(self) -> int:
        if self.whose is Whose.ANOTHERS or (self.whose is Whose.NAMED and os.geteuid() == 0):
            return walked(self.path, self._what, self._refusal)
        if self.whose is Whose.NAMED:
            return os.open(self.path, FOLDER)
        weak = weak_point(self.path) or ("it is a link" if self.path.is_symlink() else None)
        if weak is None:
            descriptor = os.open(self.path, FOLDER | os.O_NOFOLLOW)
            status = os.fstat(descriptor)
            if status.st_uid == os.geteuid() and not others_write(status, self.path):
                return descriptor
            os.close(descriptor)
            mode = stat.S_IMODE(status.st_mode)
            weak = f"it belongs to {user(status.st_uid)}, mode {mode:04o}"
        raise self._refusal(
            f"the {self._what} {self.path} is not used: {weak}",
            remedy="Use a folder of your own, whose whole path only you and root may write to.",
        )

    def make(self, mode: int = FOLDER_MODE) -> None:
        """FileExistsError if it exists."""
        self._check_text()
        with closing(self._made_above()) as parent:
            os.mkdir(self.path.name, mode, dir_fd=parent)
            self._hold(os.open(self.path.name, FOLDER | os.O_NOFOLLOW, dir_fd=parent))
            os.fsync(parent)
        strange = os.listdir(self._descriptor)  # noqa: PTH208 - by its descriptor
        if strange or os.fstat(self._descriptor).st_uid != os.geteuid():
            raise self._refusal(
                f"{self.path} was replaced by another folder while it was made",
                remedy="Choose a place that only you can write.",
            )

    def _made_above(self) -> int:
        path, missing = self.path.absolute().parent, deque[str]()
        while not os.path.lexists(path):
            missing.appendleft(path.name)
            path = path.parent
        at = Folder(path, self.whose, self._refusal)._opened()
        for name in missing:
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
                below = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at

    def make_private(self, ours: Callable[[str], bool]) -> None:
        """Hold a folder of OURS that is closed to all others, made if missing, with those above it. One that is open to
        others is closed if all names in it are ours, and refused otherwise."""
        self._check_text()
        if weak_point(self.path) is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
        self.open()
        if os.fstat(self._descriptor).st_mode & 0o077:
            if strange := next((name for name in self.names(MOST_NAMES) if not ours(name)), None):
                raise self._refusal(
                    f"the {self._what} {self.path} is open to other users, and {strange[:100]!a} in it is not a "
                    f"{self._what}'s",
                    remedy="Name a new folder.",
                )
            os.fchmod(self._descriptor, 0o700)

    def _check_text(self) -> None:
        if (why := why_no_text(self.path)) is not None:
            raise self._refusal(f"a {self._what} cannot be there: {why}", remedy=PATH_REMEDY)

    def _hold(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def exists(self, name: str) -> bool:
        """Also if it cannot be read."""
        return self.status(name) is not None

    def read(self, name: str, most: int) -> bytes:
        with closing(self.descriptor(name)) as descriptor:
            pieces, left = [], most + 1
            if os.fstat(descriptor).st_size > most:
                left = 0
            while left > 0 and (piece := os.read(descriptor, min(left, PIECE_BYTES))):
                pieces.append(piece)
                left -= len(piece)
        if left <= 0:
            raise self._refusal(
                f"{self.path / name} is larger than {_size(most)}", remedy="Loadframe writes none that large here."
            )
        return b"".join(pieces)

    def read_own(self, name: str, most: int) -> tuple[bytes, os.stat_result]:
        """A whole file that will be rewritten (`replace` like the returned status): a regular file with one name, of
        the folder's owner, root or us, so that it cannot be another name of something else."""
        with self._place(name) as (folder, leaf):
            descriptor = os.open(leaf, os.O_RDONLY | _FILE, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                status, around = os.fstat(descriptor), os.fstat(folder).st_uid
                trusted = {0, os.geteuid()}
                if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                    raise self._refusal(
                        f"{self.path / name} is not a regular file, or has a second hard link", remedy=NO_LINKS
                    )
                if not ({status.st_uid, around} & trusted or status.st_uid == around):
                    raise self._refusal(
                        f"{self.path / name} belongs to {user(status.st_uid)}, and its folder to {user(around)}",
                        remedy="Put the file into a folder of its owner.",
                    )
                data = file.read(most + 1)
        if len(data) > most:
            raise self._refusal(f"{self.path / name} is larger than {_size(most)}", remedy="Give a smaller file.")
        return data, status

    def read_from(self, name: str, start: int, most: int) -> bytes:
        with closing(self.descriptor(name)) as descriptor:
            return os.pread(descriptor, most, start)

    def state_of(self, name: str) -> tuple[int, int]:
        """Size and time of the last change (ns); zeros if nothing has this name."""
        status = self.status(name)
        return (0, 0) if status is None else (status.st_size, status.st_mtime_ns)

    def status(self, name: str) -> os.stat_result | None:
        """A link's own; None if nothing has this name."""
        with suppress(FileNotFoundError), self._place(name) as (folder, leaf):
            return os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        return None

    def link(self, name: str) -> Link | None:
        self.open()
        with suppress(FileNotFoundError), closing(os.open(name, ANY, dir_fd=self._descriptor)) as descriptor:
            return link_of(descriptor)
        return None

    def any_kind(self, name: str) -> int:
        """Open without waiting a file, pipe or device, but no link. The caller closes it."""
        self.open()
        return os.open(name, os.O_RDONLY | _FILE, dir_fd=self._descriptor)

    def folders(self, most: int) -> list[str]:
        self.open()
        with os.scandir(self._descriptor) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(names)[-most:]

    def names(self, most: int) -> list[str]:
        """The alphabetically last `most` if there are more."""
        self.open()
        return sorted(os.listdir(self._descriptor))[-most:]  # noqa: PTH208 - by its descriptor

    def changed_ns(self) -> int:
        """When a name in it was last made, renamed or removed."""
        self.open()
        return os.fstat(self._descriptor).st_mtime_ns

    def below(self, name: str) -> "Folder":
        """Held from now on. Refused if it is a link, no folder, or missing."""
        inner = Folder(self.path / name, self.whose, self._refusal, what=self._what)
        try:
            with self._place(name) as (folder, leaf):
                inner._hold(self._enter(folder, leaf, name))
        except FileNotFoundError:
            raise self._refusal(f"there is no {self._what} {inner.path}", remedy="Check the name.") from None
        return inner

    def descriptor(self, name: str) -> int:
        """A regular file, open for reading; the caller closes it."""
        with self._place(name) as (folder, leaf):
            return _opened(folder, leaf, os.O_RDONLY, partial(self._check_regular, name))

    def _check_regular(self, name: str, status: os.stat_result) -> None:
        """It must belong to the folder's owner, unless all may read it: a stranger's folder could hold another name of
        a file that only we may read, and only for now, so that a later link count proves nothing."""
        if not stat.S_ISREG(status.st_mode):
            kind = next((word for is_kind, word in KINDS.items() if is_kind(status.st_mode)), "no file")
            raise self._refusal(f"{self.path / name} is {kind}, not a regular file", remedy=NO_LINKS)
        if self.whose is Whose.OURS and not self._of_owner(status):
            raise self._refusal(
                f"{self.path / name} belongs to {user(status.st_uid)}, and Loadframe acts on what is in this folder",
                remedy="Look at it, then remove it.",
            )
        if not (self._of_owner(status) or status.st_mode & stat.S_IROTH):
            raise self._refusal(
                f"{self.path / name} does not belong to its folder's owner, and it is not readable for all",
                remedy="It may be another name of a file elsewhere. `chmod a+r` it, or omit it.",
            )

    def _of_owner(self, status: os.stat_result) -> bool:
        return status.st_uid == os.fstat(self._descriptor).st_uid

    def replace(
        self, name: str, data: bytes | memoryview, *, mode: int | None = None, like: os.stat_result | None = None
    ) -> None:
        """When this returns the file is complete on the disk, or as it was before. mode: None for FILE_MODE less our
        umask. like: copy the owner, group and mode of this status."""
        with self._place(name) as (folder, leaf):
            part, descriptor = _new_part(folder, leaf)
            try:
                try:
                    if like is not None:
                        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                            os.fchown(descriptor, like.st_uid, like.st_gid)
                        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
                    elif mode is not None:
                        os.fchmod(descriptor, mode)
                    elif (
                        os.fstat(folder).st_uid != os.geteuid()
                    ):  # its owner should be able to read it whatever our umask
                        os.fchmod(descriptor, FILE_MODE)
                    else:
                        os.fchmod(descriptor, FILE_MODE & ~_umask())
                    _write(descriptor, data)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
            os.fsync(folder)

    def remove_torn(self, *names: str) -> None:
        """Remove the remains of killed writers in these folders and in the folder itself: regular files of ours, named
        as `replace` names them, that no writer holds. Ignores failures."""
        self.open()
        for name in names:
            with suppress(OSError, UserError), self._place(f"{name}/x") as (folder, _):
                _remove_parts(folder)
        with suppress(OSError):
            _remove_parts(self._descriptor)

    def append(self, name: str, data: bytes) -> None:
        """Made if missing; on the disk when this returns."""
        with self._place(name) as (folder, leaf):
            with closing(self._to_write(folder, leaf, name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)) as descriptor:
                began = os.fstat(descriptor).st_size == 0
                _write(descriptor, data)
                os.fsync(descriptor)
            if began:
                os.fsync(folder)

    def appending(self, name: str, mode: int = FILE_MODE) -> int:
        """A file, made if missing, open for reading and for writing at its end; the caller closes it."""
        with self._place(name) as (folder, leaf):
            return self._to_write(folder, leaf, name, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode)

    def cut(self, name: str, length: int) -> None:
        with (
            self._place(name) as (folder, leaf),
            closing(self._to_write(folder, leaf, name, os.O_WRONLY)) as descriptor,
        ):
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)

    def new_file(self, name: str, mode: int = FILE_MODE) -> int:
        """A new file, open for appending; the caller closes it. FileExistsError."""
        with self._place(name) as (folder, leaf):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _FILE
            descriptor = os.open(leaf, flags, mode, dir_fd=folder)
            os.fsync(folder)
        return descriptor

    def pipe_or_device(self, name: str) -> int | None:
        """Ours or root's, open for writing without waiting; the caller closes it. None for a pipe without a reader."""

        def check(status: os.stat_result) -> None:
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                raise self._refusal(f"{self.path / name} was replaced while it was written to", remedy="Try it again.")
            if status.st_uid not in (0, os.geteuid()):
                raise self._refusal(f"it is no file, and it belongs to {user(status.st_uid)}", remedy=NO_LINKS)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                raise self._refusal("it is no file, and it has another name elsewhere", remedy=NO_LINKS)

        with self._place(name) as (folder, leaf):
            try:
                return _opened(folder, leaf, os.O_WRONLY, check)
            except OSError as error:
                status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                if error.errno == errno.ENXIO and stat.S_ISFIFO(status.st_mode):
                    return None
                raise

    def new_locked(self, name: str) -> int:
        """As new_file, and held (`hold`) before any other user may open it, except on a file system without locks."""
        descriptor = self.new_file(name, 0o600)
        with suppress(OSError):
            hold(descriptor)
        os.fchmod(descriptor, FILE_MODE & ~_umask())
        return descriptor

    def make_folder(self, name: str, mode: int = FOLDER_MODE) -> None:
        with self._place(name) as (folder, leaf):
            try:
                os.mkdir(leaf, mode, dir_fd=folder)
            except FileExistsError:
                return
            os.fsync(folder)

    def rename(self, name: str, to: str) -> None:
        """Replaces what has the new name."""
        with self._place(name) as (folder, leaf):
            os.rename(leaf, parts(to)[-1], src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._place(name) as (folder, leaf):
            os.unlink(leaf, dir_fd=folder)

    def remove_tree(self, name: str) -> None:
        with suppress(FileNotFoundError), self._place(name) as (folder, leaf):
            remove_below(folder, leaf)

    @contextmanager
    def changing(self, name: str) -> Iterator[int]:
        with (
            self._place(name) as (folder, leaf),
            closing(os.open(leaf, os.O_RDONLY | _FILE, dir_fd=folder)) as descriptor,
        ):
            if not stat.S_ISDIR((status := os.fstat(descriptor)).st_mode):
                self._check_regular(name, status)
            yield descriptor

    def _to_write(self, folder: int, leaf: str, name: str, flags: int, mode: int = FILE_MODE) -> int:
        def check(status: os.stat_result) -> None:
            self._check_regular(name, status)
            if status.st_nlink > 1 or not self._of_owner(status):
                raise self._refusal(
                    f"{self.path / name} has another name elsewhere, or is not its folder's owner's: it is not written",
                    remedy=NO_LINKS,
                )

        return _opened(folder, leaf, flags, check, mode)

    @contextmanager
    def _place(self, name: str) -> Iterator[tuple[int, str]]:
        self.open()
        *folders, leaf = parts(name, self._refusal)
        opened: list[int] = []
        try:
            for folder in folders:
                opened.append(self._enter(opened[-1] if opened else self._descriptor, folder, name))
            yield opened[-1] if opened else self._descriptor, leaf
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _enter(self, parent: int, folder: str, name: str) -> int:
        try:
            return os.open(folder, FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        except NotADirectoryError:
            raise self._refusal(f"{self.path / name}: {folder} is a link, or no folder", remedy=NO_LINKS) from None


def _opened(folder: int, leaf: str, flags: int, check: Callable[[os.stat_result], None], mode: int = FILE_MODE) -> int:
    """Checked before it is opened, which could do something, and again: another may have taken its place."""
    with suppress(FileNotFoundError):
        check(os.stat(leaf, dir_fd=folder, follow_symlinks=False))
    descriptor = os.open(leaf, flags | _FILE, mode, dir_fd=folder)
    try:
        check(os.fstat(descriptor))
    except UserError:
        os.close(descriptor)
        raise
    return descriptor


def hold(descriptor: int) -> None:
    """Lock a file that is open for writing until all have closed this descriptor. BlockingIOError if another holds it.
    Readers of the file cannot lock it (fcntl(2), open file description locks; with flock(2) they could)."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))


def is_held(descriptor: int) -> bool:
    """By another process, or by this one with another descriptor."""
    try:
        lock = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_RDLCK))
    except OSError:  # a file system without locks
        return False
    return bool(struct.unpack_from("h", lock)[0] != fcntl.F_UNLCK)


def _whole_file(kind: int) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def regular_file(path: Path, *, links: bool = False) -> int:
    """A regular file, open for reading; the caller closes it. A pipe in its place does not block. OSError, also for
    other than regular files and, unless links are followed, for links."""
    descriptor = os.open(path, os.O_RDONLY | (_FILE & ~os.O_NOFOLLOW if links else _FILE))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def parts(name: str, refusal: type[UserError] = RunError) -> list[str]:
    """`refusal` for a name that does not stay below its folder."""
    pieces = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(os.fsencode(part)) > 200 for part in pieces):
        raise refusal(
            f"{name[:200]!a} is not the name of a file below a folder",
            remedy="The file that names it was damaged or edited.",
        )
    return pieces


def _umask() -> int:
    """Setting it would change it for other threads."""
    return int(process_status("self", "Umask")[0], 8)


def _new_part(folder: int, leaf: str) -> tuple[str, int]:
    """Locked as long as its descriptor is open, so that whoever removes remains knows it. Only its owner may open it,
    and so lock it, until its mode is set; one that is already locked is not waited for."""
    while True:
        part = f".{leaf}.{os.urandom(8).hex()}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=folder)
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.unlink(part, dir_fd=folder)
        if os.fstat(descriptor).st_nlink > 0:
            return part, descriptor
        os.close(descriptor)  # another process locked it, or took it for a remain


def _remove_parts(folder: int) -> None:
    for name in filter(PART.fullmatch, os.listdir(folder)):
        with suppress(OSError), closing(os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1:
                os.unlink(name, dir_fd=folder)


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _size(most: int) -> str:
    return f"{most >> 20} MiB" if most >= 1 << 20 else f"{most:,} bytes"
