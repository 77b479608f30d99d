"""A compressed HdrHistogram of version 2, in base64: AbstractHistogram.encodeIntoCompressedByteBuffer and
ZigZagEncoding of https://github.com/HdrHistogram/HdrHistogram. Its header and zlib do not decide how much memory it
takes."""

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COMPRESSED, PLAIN, WORD_SIZES = 0x1C849304, 0x1C849303, 0xF0
"""The cookies of version 2, and their bits with another meaning."""
OUTER, INNER = struct.Struct(">II"), struct.Struct(">IIIIQQd")
MOST_BYTES_OF_A_COUNT = 6
MOST_COUNTED = 2**40
"""Requests: a million a second for twelve days. Sums of histograms stay within 64 bits."""
MOST_PLAIN_BYTES = 1 << 20
MOST_DIGITS = 5
MOST_BITS = 62


@dataclass(frozen=True)
class Histogram:
    """digits, lowest, highest: of its layout. bins: indices of the non-empty ones, ascending; counts: of each."""

    digits: int
    lowest: int
    highest: int
    bins: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each of `bins`, in the unit in which it was recorded."""
        half = half_bucket(self.digits)
        doubled = np.maximum(self.bins // half - 1, 0)
        size = np.ldexp(1.0, doubled + (self.lowest.bit_length() - 1))
        middle: NDArray[np.float64] = (self.bins - doubled * half) * size + size // 2
        return middle


def half_bucket(digits: int) -> int:
    """How many bins each doubling of the value has, so that values keep this many significant digits."""
    return 1 << (2 * int(10**digits) - 1).bit_length() - 1


def decode(encoded: bytes | str, most_plain_bytes: int = MOST_PLAIN_BYTES) -> Histogram:
    """ValueError, in words, for invalid text."""
    plain = _plain(encoded, most_plain_bytes)
    cookie, _, offset, digits, lowest, highest, _ = INNER.unpack_from(plain)
    if (cookie & ~WORD_SIZES, offset) != (PLAIN, 0):
        raise ValueError("it holds no histogram of version 2")
    if not (digits <= MOST_DIGITS and 1 <= lowest <= highest and highest.bit_length() <= MOST_BITS):
        raise ValueError(f"its range is {lowest} to {highest} with {digits} digits")
    half = half_bucket(digits)
    doublings = max((highest >> lowest.bit_length() - 1) // half, 1).bit_length()
    bins, counts = _counts(plain[INNER.size :], half * (doublings + 1))
    return Histogram(digits, lowest, highest, np.array(bins, dtype=np.int64), np.array(counts, dtype=np.int64))


def _plain(encoded: bytes | str, most_bytes: int) -> bytes:
    packed = base64.b64decode(encoded, validate=True)
    if len(packed) < OUTER.size or OUTER.unpack_from(packed)[0] & ~WORD_SIZES != COMPRESSED:
        raise ValueError("it is no compressed histogram of version 2")
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(packed[OUTER.size :], most_bytes)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed: {error}") from error
    if not inflater.eof or len(plain) < INNER.size:
        raise ValueError("it is cut off, or larger than a histogram can be")
    return plain


def _counts(plain: bytes, most_bins: int) -> tuple[list[int], list[int]]:
    """Each is a zigzag number in groups of seven bits, the lowest first; -n means n empty bins."""
    bins: list[int] = []
    counts: list[int] = []
    bin_, number, bits = 0, 0, 0
    for byte in plain:
        number |= (byte & 0x7F) << bits
        bits += 7
        if byte & 0x80:
            if bits >= 7 * MOST_BYTES_OF_A_COUNT:
                raise ValueError("a count of it is larger than a step can have")
            continue
        count = (number >> 1) ^ -(number & 1)
        if bin_ + max(-count, 1) > most_bins:
            raise ValueError("it has more bins than a histogram can have")
        if count > 0:
            bins.append(bin_)
            counts.append(count)
        bin_ += max(-count, 1)
        number, bits = 0, 0
    if bits or sum(counts) > MOST_COUNTED:
        raise ValueError("its last count is cut off, or it has more requests than a step can have")
    return bins, counts
