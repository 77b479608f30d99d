"""A step's histogram of latencies as text: the HdrHistogram log, version 1.2, of one interval. Read as untrusted, and
only in the layout that is written here, so that steps can be added."""

import io

import numpy as np
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter
from numpy.typing import NDArray

from loadframe.formats import hdr_histogram
from loadframe.model import Step

LONGEST_LATENCY_US = 3_600_000_000
"""One hour."""
SHORTEST_LATENCY_US, DIGITS = 1, 3
HALF_BUCKET = hdr_histogram.half_bucket(DIGITS)
"""Three digits: values below 2 * 1024 have a bin each; from there on each doubling has 1024."""
BINS = HALF_BUCKET * (1 + (LONGEST_LATENCY_US // (2 * HALF_BUCKET)).bit_length() + 1)

MOST_PLAIN_BYTES = hdr_histogram.INNER.size + hdr_histogram.MOST_BYTES_OF_A_COUNT * BINS


def histogram_log(step: Step, latencies_ms: NDArray[np.float32]) -> str:
    histogram = HdrHistogram(SHORTEST_LATENCY_US, LONGEST_LATENCY_US, DIGITS)
    microseconds = np.clip(np.rint(latencies_ms * 1000.0), SHORTEST_LATENCY_US, LONGEST_LATENCY_US).astype(np.int64)
    for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    histogram.set_start_time_stamp(step.window_start_s * 1000)
    histogram.set_end_time_stamp(step.window_end_s * 1000)
    text, log = begun_log()
    log.output_interval_histogram(histogram, max_value_unit_ratio=1000.0)
    return text.getvalue()


def begun_log() -> tuple[io.StringIO, HistogramLogWriter]:
    """The head of a log, and a writer that appends to it."""
    text = io.StringIO()
    log = HistogramLogWriter(text)
    log.output_log_format_version()
    log.output_legend()
    return text, log


def bin_latencies_ms() -> NDArray[np.float64]:
    """The middle of each bin (ms), rising; shape (BINS,). Within 0.05 % of the latency in whole microseconds."""
    index = np.arange(BINS)
    doubled = np.maximum(index // HALF_BUCKET - 1, 0)
    lowest = (index - doubled * HALF_BUCKET) << doubled
    return np.asarray((lowest + (1 << doubled) // 2) / 1000.0, dtype=np.float64)


def payload(log: bytes) -> bytes:
    lines = [line for line in log.split(b"\n") if line and line[:1] not in (b"#", b'"')]
    if len(lines) != 1:
        raise ValueError(f"it has {len(lines)} histograms, not one")
    return lines[0].rpartition(b",")[2].strip()


def read_counts(log: bytes) -> NDArray[np.int64]:
    """Requests per bin, shape (BINS,). ValueError, in words, for an invalid log."""
    histogram = hdr_histogram.decode(payload(log), MOST_PLAIN_BYTES)
    if (histogram.digits, histogram.lowest, histogram.highest) != (DIGITS, SHORTEST_LATENCY_US, LONGEST_LATENCY_US):
        raise ValueError(
            f"its range is {histogram.lowest} to {histogram.highest} with {histogram.digits} digits, which Loadframe "
            "does not write"
        )
    counts = np.zeros(BINS, dtype=np.int64)
    counts[histogram.bins] = histogram.counts
    if counts[0]:
        raise ValueError("it has requests that took no time")
    return counts
