"""What is read of processes for the table of a whole recording: adding a row adds a metric."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A number in a source's text: the group of a pattern, in the syntax of the regular expressions that polars has.
    counter: its growth per second is the metric, not itself. factor: into the metric's unit."""

    metric: str
    source: str
    pattern: str
    counter: bool
    factor: float = 1.0


_AFTER_NAME = r"(?s)^.*\) \S"  # the last bracket closes the name, which may contain anything
PROCESS = (
    Column("cpu.cores", "cpu", r"^(\d+)", True, 1e-9),
    Column("threads.count", "threads", r"^(\d+)", False),
    Column("open_files", "fd", r"^(\d+)", False),
    Column("paging.minor_faults", "stat", _AFTER_NAME + r"(?: -?\d+){6} (\d+)", True),
    Column("paging.major_faults", "stat", _AFTER_NAME + r"(?: -?\d+){8} (\d+)", True),
)
"""Of each followed process; the source is the last word of its name."""
RESIDENT = Column("memory.rss", "stat", _AFTER_NAME + r"(?: -?\d+){20} (\d+)", False)
SHARED = (
    Column("shared", "status", r"(?m)^RssFile:\s+(\d+)", False, 1024),
    Column("shared", "status", r"(?m)^RssShmem:\s+(\d+)", False, 1024),
)
"""What processes may share: of those of a component it counts once."""
IN_PAGES = {"memory.rss"}
"""Told in pages, whose size the recording knows."""
