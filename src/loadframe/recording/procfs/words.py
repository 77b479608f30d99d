"""The words and numbers of procfs: what all of its files are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadframe.errors import RecordingError

LARGEST = 2**64
"""No counter of the kernel is larger."""


def parse_count(data: bytes) -> int:
    """A number on its own, as the recorder writes for the open files."""
    return integer(data.strip(), "a count")


def integer(field: bytes, where: str) -> int:
    """RecordingError where it is none, or larger than any counter; where: what it stands in, for the message."""
    try:
        number = int(field)
    except ValueError as error:
        raise RecordingError(f"{where} has {field[:40]!r} where a number belongs.") from error
    if not -LARGEST < number <= LARGEST:
        raise RecordingError(f"{where} has {field[:40]!r}, larger than any counter of the kernel.")
    return number


def integers(fields: Sequence[bytes], where: str) -> list[int]:
    """All of them, as `integer`."""
    return [integer(field, where) for field in fields]


def real(field: bytes, where: str) -> float:
    """A finite number with a point, as `integer`."""
    try:
        number = float(field)
    except ValueError as error:
        raise RecordingError(f"{where} has {field[:40]!r} where a number belongs.") from error
    if not math.isfinite(number):
        raise RecordingError(f"{where} has {field[:40]!r} where a number belongs.")
    return number


def padded(numbers: list[int], length: int) -> list[int]:
    """With zeros for what older kernels leave out at the end."""
    return numbers + [0] * (length - len(numbers))


def text_of(data: bytes) -> str:
    """A name as text, whatever its bytes are."""
    return data.decode("utf-8", "replace")


def missing(where: str, what: str) -> RecordingError:
    """The error for a file without something that it must have."""
    return RecordingError(
        f"{where} as recorded lacks {what}.", remedy="The recording is damaged there, or the kernel is odd."
    )
