"""The counters of HotSpot (`jstat` reads the same ones), in /tmp/hsperfdata_USER/PID, as the process itself sees /tmp
and its pid. The file is read only if it and its folder belong to the process's user, without following links, and up to
a bound: a target may have put anything there. Layout: runtime/perfMemory.hpp (PerfDataPrologue, PerfDataEntry), version
2."""

import os
import re
import stat
import struct
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import islice

from loadframe.recording.held_files import READ_ONLY, opened

PROGRAMS = ("java", "jsvc")
MOST_BYTES = 1 << 20
"""-XX:PerfDataMemorySize is 32 KiB by default."""
MOST_ENTRIES, MOST_FOLDERS = 5_000, 2_000
WANTED = re.compile(
    r"sun\.gc\.(collector\.\d+\.time|generation\.\d+\.(maxCapacity|space\.\d+\.used)|policy\.name)|sun\.os\.hrt\.frequency"
)
_MAGIC = b"\xca\xfe\xc0\xc0"
_SYMBOLS = {0: ">", 1: "<"}
_FOLDER = READ_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = READ_ONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class JvmCounters:
    """places: of the wanted counters in the open file."""

    def __init__(self, held: int, places: Sequence[tuple[str, str, int]]) -> None:
        self._held = held
        self._places = places

    @classmethod
    def of(cls, directory: int) -> "JvmCounters | None":
        """directory: the process's folder in /proc. None if there is no file that can be trusted."""
        with ExitStack() as stack, suppress(OSError, ValueError, struct.error):
            # Otherwise it is not Java, switched off, forbidden, or malformed.
            held = _open(directory)
            stack.callback(os.close, held)
            counters = cls(held, _places(os.pread(held, MOST_BYTES, 0)))
            stack.pop_all()
            return counters
        return None

    def read(self) -> bytes:
        lines = []
        for name, form, offset in self._places:
            try:
                text = os.pread(self._held, struct.calcsize(form), offset)
                (value,) = struct.unpack(form, text)
            except (OSError, struct.error):  # cut short meanwhile
                continue
            shown = value if isinstance(value, int) else value.partition(b"\0")[0].decode("ascii", "replace")
            lines.append(f"{name} {shown}\n")
        return "".join(lines).encode()

    def close(self) -> None:
        os.close(self._held)


def _open(directory: int) -> int:
    with opened("status", directory) as status:
        lines = os.read(status, 1 << 14).decode("ascii", "replace").splitlines()
    rows = dict(line.split(":", 1) for line in lines if ":" in line)
    # the effective user, and the pid in the process's own namespace
    user, pid = int(rows["Uid"].split()[1]), int(rows.get("NSpid", rows["Pid"]).split()[-1])
    with opened("root", directory, READ_ONLY | os.O_DIRECTORY) as root, opened("tmp", root, _FOLDER) as temporary:
        with os.scandir(temporary) as listing:
            names = [entry.name for entry in islice(listing, MOST_FOLDERS)]
        for name in (name for name in names if name.startswith("hsperfdata_")):
            # OSError: it is a link, or not for us
            with suppress(OSError), opened(name, temporary, _FOLDER) as folder:
                if os.fstat(folder).st_uid != user:
                    continue
                held = os.open(str(pid), _FILE, dir_fd=folder)
                facts = os.fstat(held)
                if stat.S_ISREG(facts.st_mode) and facts.st_uid == user and facts.st_size <= MOST_BYTES:
                    return held
                os.close(held)
    raise FileNotFoundError("no hsperfdata of this process")


def _places(data: bytes) -> list[tuple[str, str, int]]:
    """(name, form, offset) of each wanted counter. ValueError or struct.error for another kind of file."""
    if data[:4] != _MAGIC or len(data) < 32 or data[5] != 2:
        raise ValueError("no hsperfdata of version 2")
    order = _SYMBOLS[data[4] & 1]
    position, count = struct.unpack_from(f"{order}ii", data, 24)
    places = []
    for _ in range(min(count, MOST_ENTRIES)):
        length, name_at, vector, kind, _, _, _, data_at = struct.unpack_from(f"{order}iiiBBBBi", data, position)
        if length <= 0 or name_at <= 0 or data_at <= 0 or position + length > len(data):
            raise ValueError("an entry of hsperfdata reaches beyond it")
        name = data[position + name_at : position + length].partition(b"\0")[0].decode("ascii", "replace")
        if WANTED.fullmatch(name):
            form = f"{order}q" if kind == ord("J") and vector == 0 else f"{min(max(vector, 1), 64)}s"
            places.append((name, form, position + data_at))
        position += length
    return places
