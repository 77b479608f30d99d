"""A step's histogram of latencies as text: the HdrHistogram log, version 1.2, of one interval.

Written with the library. Read here, as a run folder may come from a stranger: only with the layout that is written, so
that neither a header nor zlib decides how much memory it takes, and histograms of several steps can be added.
https://github.com/HdrHistogram/HdrHistogram, AbstractHistogram.encodeIntoCompressedByteBuffer (V2) and ZigZagEncoding.
"""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter
from numpy.typing import NDArray

from loadframe.model import Step

LONGEST_LATENCY_US = 3_600_000_000
"""One hour: the largest latency a histogram holds."""
SHORTEST_LATENCY_US, DIGITS = 1, 3
HALF_BUCKET = 1024
"""Three digits: values below 2 * 1024 have a bin each; from there on each doubling has 1024."""
BINS = HALF_BUCKET * (1 + (LONGEST_LATENCY_US // (2 * HALF_BUCKET)).bit_length() + 1)

COMPRESSED, PLAIN, WORD_SIZES = 0x1C849304, 0x1C849303, 0xF0
"""The cookies of version 2, and the bits of them that say something else."""
OUTER, INNER = struct.Struct(">II"), struct.Struct(">IIIIQQd")
MOST_BYTES_OF_A_COUNT = 6
MOST_REQUESTS = 2**40
"""In one step: a million requests a second for twelve days. Sums of steps stay within 64 bits."""
MOST_PLAIN_BYTES = INNER.size + MOST_BYTES_OF_A_COUNT * BINS


def histogram_log(step: Step, latencies_ms: NDArray[np.float32]) -> str:
    """The text of a histogram log: the latencies of the step's window, in microseconds."""
    histogram = HdrHistogram(SHORTEST_LATENCY_US, LONGEST_LATENCY_US, DIGITS)
    microseconds = np.clip(np.rint(latencies_ms * 1000.0), SHORTEST_LATENCY_US, LONGEST_LATENCY_US).astype(np.int64)
    for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    histogram.set_start_time_stamp(step.window_start_s * 1000)
    histogram.set_end_time_stamp(step.window_end_s * 1000)
    text = io.StringIO()
    log = HistogramLogWriter(text)
    log.output_log_format_version()
    log.output_legend()
    log.output_interval_histogram(histogram, max_value_unit_ratio=1000.0)
    return text.getvalue()


def bin_latencies_ms() -> NDArray[np.float64]:
    """The middle of each bin, rising; shape (BINS,). It is within 0.05 % of what was rounded to microseconds."""
    index = np.arange(BINS)
    doubled = np.maximum(index // HALF_BUCKET - 1, 0)
    lowest = (index - doubled * HALF_BUCKET) << doubled
    return np.asarray((lowest + (1 << doubled) // 2) / 1000.0, dtype=np.float64)


def read_counts(log: bytes) -> NDArray[np.int64]:
    """How many requests fell into each bin; shape (BINS,). ValueError, in words, for what is no such log."""
    lines = [line for line in log.split(b"\n") if line and line[:1] not in (b"#", b'"')]
    if len(lines) != 1:
        raise ValueError(f"it has {len(lines)} histograms, not one")
    return _counts(_plain(lines[0].rpartition(b",")[2].strip()))


def _plain(encoded: bytes) -> bytes:
    """The counts as bytes, their header checked and taken off."""
    packed = base64.b64decode(encoded, validate=True)
    if len(packed) < OUTER.size or OUTER.unpack_from(packed)[0] & ~WORD_SIZES != COMPRESSED:
        raise ValueError("it is no compressed histogram of version 2")
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(packed[OUTER.size :], MOST_PLAIN_BYTES)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed: {error}") from error
    if not inflater.eof or len(plain) < INNER.size:
        raise ValueError("it is cut off, or larger than a histogram can be")
    cookie, _, offset, digits, shortest, longest, _ = INNER.unpack_from(plain)
    if (cookie & ~WORD_SIZES, offset) != (PLAIN, 0):
        raise ValueError("it holds no histogram of version 2")
    if (digits, shortest, longest) != (DIGITS, SHORTEST_LATENCY_US, LONGEST_LATENCY_US):
        raise ValueError(f"its range is {shortest} to {longest} with {digits} digits, which Loadframe does not write")
    return plain[INNER.size :]


def _counts(plain: bytes) -> NDArray[np.int64]:
    """Each count is a zigzag number in groups of seven bits, the lowest first; -n is n empty bins."""
    counts = np.zeros(BINS, dtype=np.int64)
    bin_, number, bits = 0, 0, 0
    for byte in plain:
        number |= (byte & 0x7F) << bits
        bits += 7
        if byte & 0x80:
            if bits >= 7 * MOST_BYTES_OF_A_COUNT:
                raise ValueError("a count of it is larger than a step can have")
            continue
        count = (number >> 1) ^ -(number & 1)
        if bin_ + max(-count, 1) > BINS:
            raise ValueError("it has more bins than a histogram can have")
        if count > 0:
            counts[bin_] = count
        bin_ += max(-count, 1)
        number, bits = 0, 0
    if counts[0]:
        raise ValueError("it has requests that took no time")
    if bits or counts.sum(dtype=np.float64) > MOST_REQUESTS:
        raise ValueError("its last count is cut off, or it has more requests than a step can have")
    return counts
