"""The counters of a cluster in ndbinfo, as ndbinfo_select_all prints them once a second. Columns and numbers:
ha_ndbinfo_sql.cc of MySQL Cluster; MySQL 8.4 Reference Manual, "ndbinfo: The NDB Cluster Information Database"."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance
from loadframe.kinds.catalogue import counters_in
from loadframe.kinds.exposed import Exposure
from loadframe.kinds.private_server import PrivateServer
from loadframe.model import CounterSpec, Reading
from loadframe_ndb.metrics import THREADS
from loadframe_ndb.nodes import LOADED, NDBINFO, Management

PAGE = 32 * 1024
"""Bytes of a page, the unit of resources."""
TRANSACTION_MEMORY, DATA_MEMORY, TRANSPORTER_BUFFERS = "1", "3", "6"
"""Values of resources.resource_id."""
LOCKS_WAITED = ("ex_wait_ok", "ex_wait_fail", "sh_wait_ok", "sh_wait_fail")
LOCKS_TIMED = ("wait_ok_millis", "wait_fail_millis")
"""Columns of frag_locks, counted when a wait ends."""
REDO = "0"
"""Value of log_type, in logspaces and logbuffers."""
REDO_KEPT = 4 << 20
"""Bytes of each part of the redo log that are never used (c_free_mb_tail_problem_limit in DblqhMain.cpp)."""
CONNECTED = "0"
"""Value of transporters.connection_status."""
COUNTERS: Mapping[str, Sequence[str]] = {
    "transactions": ("2",),
    "commits": ("3",),
    "reads": ("4",),
    "writes": ("6",),
    "aborts": ("7",),
    "table_scans": ("8",),
    "range_scans": ("9",),
    "operations": ("10",),
    "overload_refusals": ("26", "27", "28", "29", "30"),
}
"""Values of counters.counter_id that are added up."""
SEND_CPU = CounterSpec("send_cpu", "ndb.send_cpu", cumulative=False)
"""CPU of the last second alone."""
SPECS = (*counters_in(Path(__file__).with_name("metrics.txt"), "ndbinfo").values(), SEND_CPU)
COUNTED = tuple(spec.name for spec in SPECS if spec.cumulative)
COLUMNS: Mapping[str, Sequence[str]] = {
    "counters": ("node_id", "block_number", "block_instance", "counter_id", "val"),
    "resources": ("node_id", "resource_id", "reserved", "used", "max", "spare"),
    "logspaces": ("node_id", "log_type", "total", "used"),
    "logbuffers": ("node_id", "log_type", "total", "used"),
    "transporters": (
        "node_id", "remote_node_id", "connection_status", "bytes_sent", "overload_count", "slowdown_count",
    ),
    "transactions": ("node_id", "block_instance", "c_ops"),
    "frag_locks": ("node_id", "table_id", "fragment_num", *LOCKS_WAITED, *LOCKS_TIMED),
    "threads": ("node_id", "thr_no", "thread_name"),
    "cpustat": ("node_id", "thr_no", "OS_user", "OS_system"),
    "threadstat": ("node_id", "thr_no", "thr_nm", "os_ru_utime", "os_ru_stime", "os_ru_nivcsw", "os_now"),
}  # fmt: skip
"""Columns read of the base tables of ndbinfo (ndb$counters, ...)."""
TABLES = (*COLUMNS, "nodes")
"""In the order in which they are printed. The last one is not used: where it begins, those before it are complete."""
Row = Mapping[str, str]
Block = Mapping[str, Sequence[Row]]
US, MS = 1e6, 1e3


def blocks(text: str) -> tuple[list[Block], str]:
    """Those printed to their end, and the text after them, with which the next one begins."""
    complete: list[Block] = []
    tables: dict[str, list[Row]] = {}
    rows: list[Row] | None = None
    columns: list[str] | None = None
    rest = begin = 0
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        begin += len(line)
        words = line.rstrip("\n").split("\t")[:-1]
        if line.startswith("== ") and not words:
            name = line.strip("= \n")
            if name == TABLES[-1]:
                complete.append(tables)
                tables, rest = {}, begin
            rows, columns = tables.setdefault(name, []) if name in COLUMNS else None, None
        elif rows is not None and columns is None:
            columns = words
        elif rows is not None and columns is not None and len(words) == len(columns):
            rows.append(dict(zip(columns, words, strict=True)))
    return complete, text[rest:]


@dataclass
class Totals:
    """Sums over nodes and threads that only grow: one that was restarted adds to what it had counted."""

    known: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)
    _shares: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, who: Iterable[str], value: float) -> None:
        before, last = self.known.get((name, *who), (0.0, 0.0))
        self.known[name, *who] = (before + last, value) if value < last else (before, value)

    def of(self, name: str) -> float:
        return sum(before + last for (known, *_), (before, last) in self.known.items() if known == name)

    def share(self, name: str, among: int) -> float:
        """Average of the current number of members (among); in another state there may have been more of them."""
        share, counted = self._shares.get(name, (0.0, 0.0))
        now = self.of(name)
        share += (now - counted) / among
        self._shares[name] = share, now
        return share


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the effective settings allow each data node; None where unknown. changes: of one transaction."""

    transactions: int | None = None
    operations: int | None = None
    changes: int | None = None
    shared_bytes: int | None = None


def ceilings_of(effective: Mapping[str, object]) -> Ceilings:
    """settings: by their names in config.ini. Without a limit of its own a transaction may change as many rows as there
    may be operations (Configuration.cpp, Dbtc::execREAD_CONFIG_REQ)."""

    def number(name: str) -> int | None:
        value = effective.get(name)
        return value if isinstance(value, int) else None

    operations, changes = number("MaxNoOfConcurrentOperations"), number("MaxDMLOperationsPerTransaction")
    least = min((ceiling for ceiling in (operations, changes) if ceiling is not None), default=None)
    return Ceilings(number("MaxNoOfConcurrentTransactions"), operations, least, number("SharedGlobalMemory"))


def read_block(
    block: Block, api: frozenset[int], totals: Totals, ceilings: Ceilings | None = None
) -> tuple[float, dict[str, float]] | None:
    """The time (CLOCK_MONOTONIC, by the nodes' clock) and the values by the names of SPECS; None for a block without
    the threads' statistics. api: the numbers of the API nodes."""
    stats = block.get("threadstat", ())
    if not stats:
        return None
    _count(block, totals)
    values = {name: totals.of(name) for name in COUNTED}
    threads = Counter(row["thr_nm"] for row in stats)
    for kind in THREADS:
        del values[f"{kind}_cpu"]
        if threads[kind]:
            values[f"{kind}_cpu"] = totals.share(f"{kind}_cpu", threads[kind])
    values |= _gauges(block, api) | _in_work(block, ceilings or Ceilings())
    return max(float(row["os_now"]) for row in stats) / MS, values


def _sum(row: Row, *columns: str) -> float:
    return sum(float(row[column]) for column in columns)


def _count(block: Block, totals: Totals) -> None:
    of_counter = {number: name for name, numbers in COUNTERS.items() for number in numbers}
    for row in block.get("counters", ()):
        if (name := of_counter.get(row["counter_id"])) is not None:
            instance = (row["node_id"], row["block_number"], row["block_instance"], row["counter_id"])
            totals.add(name, instance, _sum(row, "val"))
    for row in block.get("transporters", ()):
        who = (row["node_id"], row["remote_node_id"])
        totals.add("bytes_sent", who, _sum(row, "bytes_sent"))
        totals.add("send_overloads", who, _sum(row, "overload_count", "slowdown_count"))
    for row in block.get("frag_locks", ()):
        fragment = (row["node_id"], row["table_id"], row["fragment_num"])
        totals.add("lock_waits", fragment, _sum(row, *LOCKS_WAITED))
        totals.add("lock_wait", fragment, _sum(row, *LOCKS_TIMED) / MS)
    for row in block["threadstat"]:
        thread = (row["node_id"], row["thr_no"])
        totals.add("preemptions", thread, _sum(row, "os_ru_nivcsw"))
        if row["thr_nm"] in THREADS:
            totals.add(f"{row['thr_nm']}_cpu", thread, _sum(row, "os_ru_utime", "os_ru_stime") / US)


def _gauges(block: Block, api: frozenset[int]) -> dict[str, float]:
    values = {"data_nodes": float(len({row["node_id"] for row in block["threadstat"]}))}
    resources = block.get("resources", ())
    for name, number in (("data_memory", DATA_MEMORY), ("send_buffers", TRANSPORTER_BUFFERS)):
        rows = [row for row in resources if row["resource_id"] == number]
        values |= _fullest(name, rows, lambda row: _sum(row, "max") - _sum(row, "spare"), PAGE)
    for name, table in (("redo_log", "logspaces"), ("redo_buffer", "logbuffers")):
        parts = [row for row in block.get(table, ()) if row["log_type"] == REDO]
        values |= _fullest(name, parts, lambda row: _sum(row, "total"), 1)
    if "redo_log" in values:
        values["redo_log"] = max(1.0, values["redo_log"] - REDO_KEPT)
    values |= _sending(block)
    if links := block.get("transporters", ()):
        there = {int(row["remote_node_id"]) for row in links if row["connection_status"] == CONNECTED}
        values |= {"api_nodes": float(len(there & api)), "api_slots": float(len(api))}
    return values


def _sending(block: Block) -> Iterator[tuple[str, float]]:
    """threadstat leaves out send threads: their share of the last second, in whole per cent."""
    sends = {(row["node_id"], row["thr_no"]) for row in block.get("threads", ()) if row["thread_name"] == "send"}
    rows = [row for row in block.get("cpustat", ()) if (row["node_id"], row["thr_no"]) in sends]
    if rows:
        yield SEND_CPU.name, fmean(_sum(row, "OS_user", "OS_system") / 100 for row in rows)


def _in_work(block: Block, ceilings: Ceilings) -> dict[str, float]:
    """A table that could not be read contributes nothing."""
    values: dict[str, float] = {}
    memory = [row for row in block.get("resources", ()) if row["resource_id"] == TRANSACTION_MEMORY]
    if ceilings.shared_bytes is not None:  # beyond what is reserved it takes shared memory, as the other resources do
        shared = ceilings.shared_bytes // PAGE
        values |= _fullest("transaction_memory", memory, lambda row: _sum(row, "reserved") + shared, PAGE)
    if "transactions" in block:
        of_nodes, of_coordinators, operations = Counter[str](), Counter[tuple[str, str]](), [0]
        for row in block["transactions"]:
            of_nodes[row["node_id"]] += 1
            operations.append(int(row["c_ops"]))
            of_coordinators[row["node_id"], row["block_instance"]] += operations[-1]
        values["transactions_open"] = float(max(of_nodes.values(), default=0))
        values["operations_open"] = float(max(of_coordinators.values(), default=0))
        values["largest_transaction"] = float(max(operations))
    allowed = {
        "most_transactions": ceilings.transactions,
        "most_operations": ceilings.operations,
        "most_changes": ceilings.changes,
    }
    return values | {name: float(most) for name, most in allowed.items() if most is not None}


def _fullest(
    name: str, rows: Iterable[Row], total_of: Callable[[Row], float], factor: int
) -> Iterator[tuple[str, float]]:
    parts = [(_sum(row, "used") * factor, total * factor) for row in rows if (total := total_of(row)) > 0]
    if parts:
        used, total = max(parts, key=lambda part: part[0] / part[1])
        yield f"{name}_used", used
        yield name, total


EVERY_S = 1
"""The program counts whole seconds."""
LOST = "parts_lost"
ALL_SPECS = (*SPECS, CounterSpec(LOST, f"target.{LOST}", cumulative=False))
CONNECTS_WITHIN_S = 15.0
MOST_BYTES = 32 << 20
"""Read of its output at once: a block of two data nodes has 10 kB."""


class NdbinfoProgram(PrivateServer):
    """ndbinfo_select_all; its log is what it prints."""

    package, name = LOADED, "the reader of ndbinfo"

    def __init__(self, lease: Lease, user: Privilege) -> None:
        super().__init__(lease, "ndbinfo", user, None)
        self._place = 0

    def start(self, management: Management, allowance: Allowance) -> None:
        """It needs a started cluster, and an API slot in it."""
        command = (self.required(NDBINFO), *management.reached_by, "--loops=0", f"--delay={EVERY_S}", *TABLES)
        self.launch(command, allowance, lambda: True)

    def printed(self) -> str:
        """Since the last call; where that is too much, its end."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            end = log.seek(0, 2)
            begin = max(self._place if self._place <= end else 0, end - MOST_BYTES)
            log.seek(begin)
            text = log.read(end - begin)
        self._place = end
        return text.decode("utf-8", errors="replace")


class NdbinfoExposure(Exposure):
    """The program's counters and, reported by its owner, the data nodes that have ended."""

    def __init__(self, program: NdbinfoProgram, api: frozenset[int]) -> None:
        super().__init__()
        self._program = program
        self._api = api
        self._totals = Totals()
        self._ceilings = Ceilings()
        self._rest = ""
        self._seen: list[Reading] = []
        self._newest: dict[str, float] = {}
        self._has_counters = False
        self._why_not = ""

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        return ALL_SPECS

    def saw(self, at_s: float, lost: int) -> None:
        """lost: data nodes that have ended while the others go on."""
        self._seen.append(Reading(at_s, {LOST: float(lost)}))

    def begin(self, ceilings: Ceilings) -> None:
        """After another start of the program: its unfinished output is dropped."""
        self._rest, self._newest, self._has_counters = "", {}, False
        self._ceilings = ceilings

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        """It reads always. What happened between two loads is read for its counts alone."""
        self.readings()
        yield
        if (error := self._program.died()) is not None:
            self._why_not = error.fact

    def readings(self) -> list[Reading]:
        new, self._rest = blocks(self._rest + self._program.printed())
        read = (read_block(block, self._api, self._totals, self._ceilings) for block in new)
        readings = [Reading(*reading) for reading in read if reading is not None]
        self._has_counters = self._has_counters or bool(readings)
        both, self._seen = sorted((*readings, *self._seen), key=lambda reading: reading.at_s), []
        for reading in both:
            self._newest.update(reading.counters)
        return both

    def now(self) -> dict[str, float]:
        """After a start the program takes seconds to connect."""
        deadline = time.monotonic() + CONNECTS_WITHIN_S
        self.readings()
        while not self._has_counters and self._program.died() is None and time.monotonic() < deadline:
            time.sleep(EVERY_S / 10)
            self.readings()
        return dict(self._newest)

    def missing(self) -> tuple[str, ...]:
        if self._why_not:
            return (f"Counters of ndbinfo are missing where it could not be read: {self._why_not}.",)
        return () if self._has_counters else ("ndbinfo returned no counters: steps shorter than 2 s may have none.",)
