"""The options of the workload metadata-index."""

from dataclasses import dataclass

from loadframe.model import Knob
from loadframe.workloads.options import choice, number, switch, text, whole
from loadframe_index import trees
from loadframe_index.store import INDEXES

MOST_PROCESSES, MOST_THREADS = 64, 256
MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class MetadataIndexOptions:
    tree: str = text("", "a folder to scan, which is only read; without one a tree is made")
    entries: int = whole(100_000, 1, MOST_ENTRIES, "entries of the tree that is made")
    files_per_directory: int = whole(30, 1, MOST_ENTRIES, "files in each directory of the tree that is made")
    depth: int = whole(5, 1, trees.MOST_DEPTH, "how deep its directories are; 1: all are in its root")
    median_bytes: int = whole(
        16_384, 0, 1 << 40, "median of its files' sizes, which are log-normal; they have no content"
    )
    sigma: float = number(2.0, 0.0, 5.0, "standard deviation of the natural logarithm of their sizes")
    owners: int = whole(10, 0, 10_000, "how many users own its files, where root makes it")
    age_days: int = whole(730, 0, 36_500, "over how many days their times are spread")
    seed: int = whole(0, 0, 2**31 - 1, "of names, sizes, owners and times")
    start: str = choice("empty", ("empty", "indexed"), "what the database has when a step begins: nothing, or the tree")
    cold: bool = switch(False, "the kernel has nothing of the tree in memory when a step begins (needs root)")
    scanners: int = whole(1, 1, MOST_PROCESSES, "processes, each with all stages")
    scan_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that list directories")
    fs_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that look entries up; never below scan_threads")
    info_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that ask the database what it knows")
    db_threads: int = whole(1, 1, MOST_THREADS, "threads of a process that write to the database")
    batch: int = whole(1000, 1, 100_000, "entries of a batch, each of which is one query and one transaction")
    max_pending: int = whole(10_000, 1, 10_000_000, "entries that may wait before each stage of a process")
    indexes: str = choice(
        "parent",
        tuple(INDEXES),
        "none, parent (directories have an index), du (and totals of each directory), or all (and an index of size, "
        "age, owner and name)",
    )
    rewrite: bool = switch(False, "write entries again that are unchanged, in place of noting that they were seen")


KNOBS = (
    *(
        Knob(option, low=1, high=most, raises=f"pipeline.{stage}", layer="application")
        for stage, option, most in (
            ("SCAN", "scan_threads", MOST_THREADS),
            ("GET_INFO_DB", "batch", 100_000),
            ("GET_INFO_DB", "info_threads", MOST_THREADS),
            ("GET_INFO_FS", "fs_threads", MOST_THREADS),
            ("DB_APPLY", "batch", 100_000),
            ("DB_APPLY", "db_threads", MOST_THREADS),
        )
    ),
    Knob(
        "indexes",
        ("all", "du", "parent"),
        raises="pipeline.DB_APPLY",
        layer="application",
        price="answers that had an index or totals of their own read the whole table",
    ),
)
"""What gives each stage more. Larger batches come first: a query and a transaction have a price of their own. Fewer
indexes come last: whoever asks the database pays for them."""
