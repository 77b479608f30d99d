"""Every metric by its name: what it is, its unit, how it is shown.

Names that OpenTelemetry's semantic conventions have are used as they are (`system.`, `process.`); what belongs to one
component of the study begins with the component (`target.`, `driver.`, `recorder.`); server counters begin with the
kind of the server. Shares are 0..1, rates are per second, `cores` are CPU-seconds per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """name: as in Step.metrics. unit: one of UNITS. what: one line for people."""

    name: str
    unit: str
    what: str


def _table(rows: str) -> dict[str, Metric]:
    metrics = {}
    for row in rows.strip().splitlines():
        name, unit, what = (cell.strip() for cell in row.split("|"))
        metrics[name] = Metric(name, unit, what)
    return metrics


METRICS = _table("""
throughput                        | 1/s   | requests done per second
system.cpu.utilization            | share | all CPUs busy
system.cpu.user                   | share | CPU time in user space
system.cpu.system                 | share | CPU time in the kernel
system.cpu.iowait                 | share | CPU idle while I/O was outstanding
system.cpu.steal                  | share | CPU time the hypervisor gave to somebody else
system.cpu.busiest                | share | the busiest CPU
system.cpu.own                    | share | CPU time of the target and the driver, of all CPUs
system.cpu.foreign                | share | CPU time of processes that belong to nobody in the study
system.cpu.count                  | count | CPUs online
system.processes.running          | count | runnable threads, average
system.processes.blocked          | count | threads blocked on I/O, average
system.processes.created          | 1/s   | processes created
system.context_switches           | 1/s   | context switches
system.memory.available           | bytes | memory available without swapping, smallest
system.memory.limit               | bytes | memory of the machine
system.memory.utilization         | share | memory in use, largest
system.memory.used                | bytes | memory in use, largest
system.cpu.busy_cores             | cores | CPUs busy
system.memory.dirty               | bytes | dirty pages, largest
system.memory.writeback           | bytes | pages under writeback, largest
system.paging.major_faults        | 1/s   | page faults that waited for the disk
system.paging.direct_scan         | 1/s   | pages scanned by direct reclaim
system.paging.direct_stalls       | 1/s   | allocations that stalled in direct reclaim
system.paging.refaults            | 1/s   | file pages read again soon after they were dropped
system.paging.swap_in             | 1/s   | pages swapped in
system.paging.swap_out            | 1/s   | pages swapped out
system.disk.busy                  | share | the busiest disk had requests outstanding
system.disk.queue                 | count | requests outstanding on the busiest disk, average
system.disk.reads                 | 1/s   | disk reads
system.disk.writes                | 1/s   | disk writes
system.disk.read_bytes            | bytes/s | disk bytes read
system.disk.write_bytes           | bytes/s | disk bytes written
system.disk.flushes               | 1/s   | cache flushes the disk completed (one or more per fsync)
system.disk.flush_ms              | ms    | time per cache flush
system.disk.flushes_per_request   | count | disk cache flushes per request of the workload
system.pressure.cpu.some          | share | time in which some task waited for a CPU
system.pressure.memory.some       | share | time in which some task waited for memory
system.pressure.memory.full       | share | time in which all tasks waited for memory
system.pressure.io.some           | share | time in which some task waited for I/O
system.pressure.io.full           | share | time in which all tasks waited for I/O
system.files.allocated            | count | open files on the whole machine
system.files.limit                | count | fs.file-max
target.saturation                 | share | CPU time of the target, of all that it may use
target.cpu.cores                  | cores | CPU of the target
target.cpu.user_cores             | cores | CPU of the target in user space
target.cpu.system_cores           | cores | CPU of the target in the kernel
target.cpu.hottest_thread         | cores | the target's busiest thread
target.cpu.run_delay              | s/s   | time the target's threads were runnable and waited for a CPU
target.threads.count              | count | threads of the target
target.threads.running            | count | of these running or runnable, average
target.threads.blocked            | count | of these in uninterruptible sleep (D), average
target.threads.sleeping           | count | of these in interruptible sleep (S), average
target.threads.polling            | count | of these asleep in a timer: waiting by sleep and retry
target.open_files                 | count | open files of the target's process that has most
target.open_files.limit           | count | RLIMIT_NOFILE (soft) of that process
target.memory.rss                 | bytes | resident memory of the target, largest
target.io.read_bytes              | bytes/s | bytes the target read from disks
target.io.write_bytes             | bytes/s | bytes the target wrote towards disks
target.io.write_calls             | 1/s   | write calls of the target
target.paging.major_faults        | 1/s   | major page faults of the target
target.paging.minor_faults        | 1/s   | minor page faults of the target
target.context_switches.voluntary | 1/s   | the target's threads gave up the CPU to wait
target.context_switches.involuntary | 1/s | the target's threads were taken off the CPU
driver.cpu.cores                  | cores | CPU of the load driver
driver.cpu.hottest_thread         | cores | the driver's busiest thread
driver.cpu.run_delay              | s/s   | time the driver's threads waited for a CPU
driver.saturation                 | share | CPU time of the driver of all it may use, or its busiest thread of one CPU
driver.threads.count              | count | threads of the driver
driver.open_files                 | count | open files of the driver's process that has most
driver.memory.rss                 | bytes | resident memory of the driver, largest
recorder.cpu.cores                | cores | CPU of Loadframe's own recorder
workload.lock_held                | share | of the window in which one request held the lock that only one can hold
workload.lock_waiting             | count | requests waiting for that lock, average
workload.errors                   | 1/s   | requests that failed
workload.concurrency              | count | requests in progress, average
sqlite.database_bytes             | bytes | size of the database file
sqlite.wal_bytes                  | bytes | size of the write-ahead log
mariadb.open_tables               | count | tables open in the table cache
mariadb.opened_tables             | 1/s   | tables opened because the cache did not have them
mariadb.table_cache_misses        | 1/s   | look-ups that the table cache could not answer
mariadb.table_cache_overflows     | 1/s   | tables closed because the table cache was full
mariadb.table_open_cache          | count | tables the table cache may hold (effective)
mariadb.table_cache_instances     | count | instances of the table cache in use
mariadb.open_table_definitions    | count | table definitions in the cache
mariadb.opened_table_definitions  | 1/s   | table definitions read because the cache did not have them
mariadb.table_definition_cache    | count | table definitions the cache may hold (effective)
mariadb.open_files                | count | files the server counts as open
mariadb.opened_files              | 1/s   | files the server opened
mariadb.open_files_limit          | count | files the server may open (effective)
mariadb.connections               | count | client connections open
mariadb.max_used_connections      | count | most client connections at once
mariadb.max_connections           | count | client connections allowed (effective)
mariadb.threads_running           | count | server threads that work on a statement
mariadb.connection_errors_max     | 1/s   | connections refused because all were taken
mariadb.aborted_connects          | 1/s   | connections that failed
mariadb.questions                 | 1/s   | statements
mariadb.log_fsyncs                | 1/s   | fsyncs of the redo log
mariadb.data_fsyncs               | 1/s   | fsyncs of data files
mariadb.pool_reads                | 1/s   | pages that the buffer pool had to read from disk
mariadb.pool_read_requests        | 1/s   | pages asked of the buffer pool
mariadb.pool_wait_free            | 1/s   | waits for a free page in the buffer pool
mariadb.pages_flushed             | 1/s   | pages that the buffer pool wrote to disk
mariadb.redo_fill                 | share | redo log in use, of what may be before pages must be written, largest
mariadb.log_waits                 | 1/s   | waits because the log buffer was too small
mariadb.table_locks_waited        | 1/s   | table locks that had to wait
mariadb.row_lock_waits            | 1/s   | row locks that had to wait
mariadb.temporary_disk_tables     | 1/s   | temporary tables that went to disk
""")

_CAGED = """
cgroup.cpu                     | cores   | CPU of the control group of {}
cgroup.cpu.limit               | cores   | CPU time that the cage of {} allows
cgroup.cpu.utilization         | share   | CPU time of {}, of what its cage allows
cgroup.cpu.throttled           | 1/s     | scheduler periods in which the CPU quota of {} ran out
cgroup.cpu.throttled_share     | share   | time in scheduler periods in which the CPU quota of {} ran out
cgroup.cpu.throttled_time      | s/s     | time for which CPUs were denied to {}, all CPUs together
cgroup.memory.usage            | bytes   | memory in the control group of {}, page cache included, largest
cgroup.memory.peak             | bytes   | most memory in the control group of {} since it was made
cgroup.memory.limit            | bytes   | memory that the cage of {} allows
cgroup.memory.hits             | 1/s     | times the cage of {} had no memory left and something had to go
cgroup.memory.refaults         | 1/s     | file pages of {} read again soon after they were dropped
cgroup.memory.oom_kills        | 1/s     | processes of {} ended because the cage had no memory left
cgroup.read_bytes              | bytes/s | bytes read from the disk by {}
cgroup.read_bytes.limit        | bytes/s | bytes read from the disk by {}, as its cage allows
cgroup.read_bytes.utilization  | share   | bytes read from the disk by {}, of what its cage allows
cgroup.write_bytes             | bytes/s | bytes written to the disk by {}
cgroup.write_bytes.limit       | bytes/s | bytes written to the disk by {}, as its cage allows
cgroup.write_bytes.utilization | share   | bytes written to the disk by {}, of what its cage allows
cgroup.reads                   | 1/s     | disk reads of {}
cgroup.reads.limit             | 1/s     | disk reads of {}, as its cage allows
cgroup.reads.utilization       | share   | disk reads of {}, of what its cage allows
cgroup.writes                  | 1/s     | disk writes of {}
cgroup.writes.limit            | 1/s     | disk writes of {}, as its cage allows
cgroup.writes.utilization      | share   | disk writes of {}, of what its cage allows
cgroup.pids                    | count   | processes and threads of {}
cgroup.pids.limit              | count   | processes and threads that the cage of {} allows
cgroup.pids.refused            | 1/s     | processes and threads that the cage refused {}
"""
"""What a component used of its cage, by the end of the metric's name."""


def _caged(component: str, words: str) -> str:
    return "".join(f"{component}.{row}\n" for row in _CAGED.replace("{}", words).strip().splitlines())


METRICS.update(_table(_caged("target", "the target") + _caged("driver", "the load driver")))


def describe(metric: str) -> Metric:
    """The registered metric; KeyError for a name that nobody registered."""
    return METRICS[metric]


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    size = abs(value)
    if size >= 100 or value == round(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


def _bytes(value: float) -> str:
    size, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"


def show(value: float, unit: str) -> str:
    """A value with its unit, short enough for a sentence. Shares become per cent; unknown units are appended."""
    match unit:
        case "share":
            return f"{100 * value:.3g} %"
        case "bytes":
            return _bytes(value)
        case "bytes/s":
            return _bytes(value) + "/s"
        case "1/s":
            return f"{_short(value)}/s"
        case "count" | "":
            return _short(value)
        case _:
            return f"{_short(value)} {unit}"


def show_metric(metric: str, value: float) -> str:
    """A metric's value as people read it."""
    return show(value, METRICS[metric].unit if metric in METRICS else "")
