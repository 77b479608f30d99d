"""Shared memory that killed servers leave behind: POSIX (shm_overview(7)), and PostgreSQL's, which has a System V
segment of 56 bytes that names its data directory, and the piece of POSIX memory that lists the others (PGShmemHeader,
storage/pg_shmem.h; dsm_control_header, storage/ipc/dsm.c; the same in VERSIONS)."""

import ctypes
import os
import stat
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import UserError
from loadframe.system.files import Folder, Whose, regular_file
from loadframe.system.kernel import kernel_text

FOLDER = Path("/dev/shm")
SEGMENTS = Path("/proc/sysvipc/shm")
MOST_BYTES = 1 << 20
VERSIONS = range(14, 18)
"""Versions of PostgreSQL."""
HEADER = struct.Struct("=iiQQI4xQQQ")
"""Magic, its creator's pid, two sizes, the number of the list, a pointer, device and inode of the data directory."""
HEADER_MAGIC = 679834894
LIST = struct.Struct("=III4x")
"""Magic, number of items, room for items."""
LIST_MAGIC = 0x9A503D32
ITEM = struct.Struct("=II32x")
"""The number of a piece, and how many use it; 0 for a free place."""
SHM_RDONLY, IPC_RMID = 0o10000, 0  # linux/shm.h, linux/ipc.h


@dataclass(frozen=True, slots=True)
class Segment:
    """sysvipc(7), /proc/sysvipc/shm. attached: how many processes have it."""

    id: int
    size_bytes: int
    attached: int
    uid: int


def name_of(lease: str) -> str:
    return f"loadframe{lease}"


def remove_left(lease: str, folder: Path) -> list[str]:
    pieces = sum(remove_of_postgres(file.parent) for file in folder.glob("*/data/postmaster.pid"))
    of_postgres = [f"removed {pieces} piece{'s' * (pieces != 1)} of a PostgreSQL's shared memory"] if pieces else []
    owners: set[int] = set()
    with suppress(OSError):
        owners = {entry.lstat().st_uid for entry in folder.iterdir()}  # the servers' users
    return [*remove(name_of(lease), owners), *of_postgres]


def remove(name: str, owners: Iterable[int] = ()) -> list[str]:
    """name: Lease.shared_name. owners: users whose segments these may be, in addition to us."""
    allowed, removed, kept = {os.geteuid(), *owners}, 0, []
    for segment in (*FOLDER.glob(f"{name}-*"), *FOLDER.glob(f"sem.{name}-*")):  # semaphores: sem_overview(7)
        try:
            status = segment.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_uid in allowed:  # any user may give theirs a name like ours
                segment.unlink(missing_ok=True)
                removed += 1
        except PermissionError:  # of a server's user
            kept.append(segment)
        except FileNotFoundError:
            continue
    actions = [f"removed {removed} piece{'s' * (removed != 1)} of shared memory"] if removed else []
    return [*actions, *(f"could not remove {segment}: remove it as its owner" for segment in kept)]


def remove_of_postgres(data: Path, within_s: float = 0.0) -> int:
    """Remove what belongs to a dead server of this data directory; returns the number of pieces. The segment counts
    only if it names these very data. within_s: how long its processes may take to end."""
    files = Folder(data, Whose.ANOTHERS)
    try:
        place = data.lstat()
        named = named_segment(files.read("postmaster.pid", MOST_BYTES))
        version = int(files.read("PG_VERSION", MOST_BYTES))
    except (OSError, UserError, ValueError):  # it has been removed, or is no file of the server's
        return 0
    if version not in VERSIONS:
        return 0
    deadline = time.monotonic() + within_s
    while True:
        segment = next((segment for segment in segments(SEGMENTS) if segment.id == named), None)
        if segment is None or not segment.attached or time.monotonic() >= deadline:
            break
        time.sleep(0.01)
    if segment is None or segment.attached or segment.uid != place.st_uid or segment.size_bytes != HEADER.size:
        return 0
    magic, _, _, _, number, _, device, inode = HEADER.unpack(bytes_of(segment))
    if (magic, device, inode) != (HEADER_MAGIC, place.st_dev, place.st_ino):
        return 0
    removed = 0
    for piece in _pieces(number, segment.uid):
        with suppress(OSError):
            path = FOLDER / f"PostgreSQL.{piece}"
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_uid == segment.uid:
                path.unlink()
                removed += 1
    return removed + forget(segment)


def named_segment(text: bytes) -> int | None:
    """The segment's id in a postmaster.pid, whose 7th line has key and id (utils/pidfile.h)."""
    words = text.split(b"\n")[6:7]
    numbers = words[0].split() if words else []
    return int(numbers[1]) if len(numbers) == 2 and numbers[1].isdigit() and len(numbers[1]) < 12 else None


def segments(listing: Path) -> list[Segment]:
    try:
        rows = [line.split() for line in kernel_text(listing).splitlines()]
    except FileNotFoundError:
        return []
    columns = {name: number for number, name in enumerate(rows[0])}
    wanted = [columns[name] for name in ("shmid", "size", "nattch", "uid")]
    return [Segment(*(int(row[number]) for number in wanted)) for row in rows[1:]]


def bytes_of(segment: Segment) -> bytes:
    """Zeros if it can no longer be read."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment.id, None, SHM_RDONLY)
    if address is None or address == ctypes.c_void_p(-1).value:
        return bytes(segment.size_bytes)
    try:
        return ctypes.string_at(address, segment.size_bytes)
    finally:
        libc.shmdt(ctypes.c_void_p(address))


def forget(segment: Segment) -> bool:
    return bool(ctypes.CDLL(None).shmctl(segment.id, IPC_RMID, None) == 0)


def _pieces(number: int, owner: int) -> list[int]:
    """A list's pieces, its own last. Odd numbers are of memory that is not shared by name (dsm.c)."""
    try:
        content = _read(FOLDER / f"PostgreSQL.{number}", owner)
    except OSError:
        return []
    return [*(piece for piece in listed(content) if piece % 2 == 0 and piece != number), number]


def listed(content: bytes) -> list[int]:
    if len(content) < LIST.size:
        return []
    magic, items, _ = LIST.unpack_from(content)
    room = min(items, (len(content) - LIST.size) // ITEM.size) if magic == LIST_MAGIC else 0
    pieces = (ITEM.unpack_from(content, LIST.size + place * ITEM.size) for place in range(room))
    return list(dict.fromkeys(number for number, users in pieces if users))


def _read(path: Path, owner: int) -> bytes:
    with os.fdopen(regular_file(path), "rb") as file:
        if os.fstat(file.fileno()).st_uid != owner:
            raise PermissionError(f"{path} is not a file of user {owner}")
        return file.read(MOST_BYTES)
