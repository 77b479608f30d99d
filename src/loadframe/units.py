"""Every metric by its name: what it is, its unit, how it is shown.

Names follow OpenTelemetry's semantic conventions where they exist (CONVENTIONS tells which is which); what belongs to
one component of the study begins with the component (`target.`, `driver.`, `recorder.`, and `loader.`, `shard1.`, ...
of a target in several pieces); server counters begin with the kind of the server. Shares are 0..1, rates are per
second, `cores` are CPU-seconds per second.
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


METRICS: dict[str, Metric] = {}


def register(rows: str) -> None:
    """Rows of name | unit | what. ValueError for a name that is there already."""
    for row in rows.strip().splitlines():
        name, unit, what = (cell.strip() for cell in row.split("|"))
        if name in METRICS:
            raise ValueError(f"the metric {name} is registered twice")
        METRICS[name] = Metric(name, unit, what)


register("""
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
system.cpu.frequency              | Hz    | speed of the fastest CPU, average
system.cpu.frequency_drop         | share | the fastest CPU's speed, lowest below highest
system.cpu.throttles              | 1/s   | times a CPU was slowed down because it was hot
system.clock.step                 | s     | the wall clock was set by this much
system.stall.share                | share | time in which no tick could be recorded: the machine stalled
system.stall.longest_ms           | ms    | longest time without a tick
system.network.retransmits        | 1/s   | TCP segments sent again
system.network.listen_drops       | 1/s   | connections dropped before they were accepted
system.processes.running          | count | runnable threads, average
system.processes.blocked          | count | threads blocked on I/O, average
system.processes.created          | 1/s   | processes created
system.context_switches           | 1/s   | context switches
system.tlb_shootdowns             | 1/s   | times a CPU was interrupted because pages were unmapped
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
target.cpu.limit                  | cores | CPUs that the target may use
target.cpu.utilization            | share | share of its CPUs in use by the target
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
driver.cpu.limit                  | cores | CPUs that the load driver may use
driver.cpu.utilization            | share | share of its CPUs in use by the load driver
driver.cpu.hottest_thread         | cores | the driver's busiest thread
driver.cpu.run_delay              | s/s   | time the driver's threads waited for a CPU
driver.saturation                 | share | CPU time of the driver of all it may use, or its busiest thread of one CPU
driver.threads.count              | count | threads of the driver
driver.open_files                 | count | open files of the driver's process that has most
driver.memory.rss                 | bytes | resident memory of the driver, largest
recorder.cpu.cores                | cores | CPU of Loadframe's own recorder
recorder.tick_gap                 | ms    | time since the tick before: a stalled machine shows as a gap
workload.driver_lag               | share | part of the requests' time in which the load driver waited for a CPU
workload.lock_held                | share | of the window in which one request held the lock that only one can hold
workload.lock_waiting             | count | requests waiting for that lock, average
workload.errors                   | 1/s   | requests that failed
workload.bytes                    | bytes/s | bytes of the bodies that arrived
workload.offered                  | 1/s   | requests that should have begun, in an open loop
workload.concurrency              | count | requests in progress, average
workload.silence_ms               | ms    | longest time in which no request was done
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
system.cpu.softirq_busiest        | share | the CPU with most interrupt work
system.cpu.frequency_missing      | share | highest frequency that the CPUs did not run at, average
system.cpu.frequency_lost         | share | speed that busy CPUs did not get
system.cpu.throttled              | share | time for which a CPU was slowed because of heat
system.swap.used                  | bytes | swap space in use
system.swap.limit                 | bytes | swap space
system.memory.dirty_limit         | bytes | dirty pages at which writers are stopped
system.paging.background_scan     | 1/s   | pages scanned by the kernel's own reclaim
system.paging.direct_share        | share | page scanning done by direct reclaim
system.paging.refault_share       | share | bytes read from disks that were dropped a short while ago
system.paging.refault_wait        | share | time in which tasks waited for pages dropped a short while ago
system.disk.flushing              | share | the disk that flushes most emptied its cache
system.disk.queue_limit           | count | requests that a disk queues
system.filesystem.space           | share | space in use on the fullest file system
system.filesystem.inodes          | share | inodes in use on the file system with fewest left
system.files.per_process_limit    | count | fs.nr_open
system.threads.count              | count | threads on the machine
system.threads.limit              | count | kernel.threads-max
system.pids.limit                 | count | kernel.pid_max
system.mappings.limit             | count | vm.max_map_count
system.aio                        | count | asynchronous I/O requests reserved
system.aio.limit                  | count | fs.aio-max-nr
system.epoll_watches.limit        | count | fs.epoll.max_user_watches
system.inotify_watches.limit      | count | fs.inotify.max_user_watches
system.inotify_instances.limit    | count | fs.inotify.max_user_instances
system.network.somaxconn          | count | net.core.somaxconn
system.network.listen_overflows   | 1/s   | connections dropped because an accept queue was full
system.network.syn_received       | count | half-open connections
system.network.syn_backlog        | count | net.ipv4.tcp_max_syn_backlog
system.network.syn_drops          | 1/s   | half-open connections dropped or answered with a cookie
system.network.local_ports        | count | local ports used for the destination with most connections
system.network.local_ports.limit  | count | local ports for one destination
system.network.local_ports.per_second | 1/s | connections to one destination that local ports allow
system.network.connections_opened | 1/s   | connections opened from here
system.network.time_wait          | count | sockets in TIME_WAIT
system.network.time_wait.limit    | count | net.ipv4.tcp_max_tw_buckets
system.network.time_wait_overflows | 1/s  | sockets that found no room in TIME_WAIT
system.network.tcp_memory         | bytes | memory of TCP sockets
system.network.tcp_memory.limit   | bytes | third number of net.ipv4.tcp_mem
system.network.tcp_memory_pressures | 1/s | times TCP came under memory pressure
system.network.conntrack          | count | connections tracked
system.network.conntrack.limit    | count | net.netfilter.nf_conntrack_max
system.network.backlog            | count | packets waiting for one CPU
system.network.backlog.limit      | count | net.core.netdev_max_backlog
system.network.backlog_drops      | 1/s   | packets dropped because that queue was full
system.network.squeezes           | 1/s   | receiving rounds cut short
system.network.packets_per_round  | count | packets per receiving round, average
system.network.packets_per_round.limit | count | net.core.netdev_budget
system.network.link               | bytes/s | bytes per second on the interface nearest to its speed
system.network.link.limit         | bytes/s | speed of that interface
user.threads                      | count | threads of the user's processes
user.threads.limit                | count | RLIMIT_NPROC (soft) of the target
target.open_files.hard_limit      | count | RLIMIT_NOFILE (hard) of that process
target.memory.shared              | bytes | shared memory that the target's processes have touched
target.mappings                   | count | memory mappings of the target's process
target.cpus.named                 | count | CPUs that the affinity of the target's process names
target.cpus.allowed               | count | CPUs the target's process may use: those named, as far as there are
target.epoll_watches              | count | files that the target's process watches by epoll
target.inotify_watches            | count | files that the target watches by inotify
target.inotify_instances          | count | inotify instances of the target
target.accept_queue               | count | connections waiting in its fullest accept queue
target.accept_queue.limit         | count | connections that may wait there
target.memory.allowed             | bytes | memory that the target may use: its control group's or the machine's
target.cgroup.pids                | count | threads of the control group nearest to its limit
target.cgroup.pids.limit          | count | pids.max
target.cgroup.pids.refused        | 1/s   | threads refused there
target.cgroup.memory              | bytes | memory of the control group nearest to its limit
target.cgroup.memory.limit        | bytes | memory.max or memory.limit_in_bytes
target.cgroup.memory.hits         | 1/s   | times it was at that limit
target.cgroup.cpu                 | cores | CPU of the control group nearest to its quota
target.cgroup.cpu.limit           | cores | CPU quota of that control group
target.cgroup.cpu.throttled       | 1/s   | periods in which it was throttled
target.cgroup.read_bytes          | bytes/s | bytes read on the device nearest to its limit
target.cgroup.read_bytes.limit    | bytes/s | bytes that may be read there
target.cgroup.write_bytes         | bytes/s | bytes written on the device nearest to its limit
target.cgroup.write_bytes.limit   | bytes/s | bytes that may be written there
target.cgroup.reads               | 1/s   | reads on the device nearest to its limit
target.cgroup.reads.limit         | 1/s   | reads allowed there
target.cgroup.writes              | 1/s   | writes on the device nearest to its limit
target.cgroup.writes.limit        | 1/s   | writes allowed there
mariadb.table_cache_hits          | 1/s   | look-ups that the table cache answered
mariadb.tables_at_once            | count | running statements times tables per statement
mariadb.max_connections.asked     | count | client connections asked for
mariadb.open_files_limit.asked    | count | files asked for, 0 where the server works them out
mariadb.table_open_cache.asked    | count | tables asked for in the table cache
mariadb.table_open_cache_instances | count | instances the table cache may have (effective)
mariadb.files_wanted              | count | files that the connections and the table cache asked for want
mariadb.files_of_full_cache       | count | files of a full table cache in all its instances
mariadb.memory_at_full            | bytes | resident memory expected with every connection taken
mariadb.threads_created           | 1/s   | threads made for connections
mariadb.new_connections           | 1/s   | attempts to connect
mariadb.new_thread_share          | share | connections for which a thread was made
mariadb.pool_pages                | count | pages of the buffer pool
mariadb.pool_pages_free           | count | pages of the buffer pool unused
mariadb.pool_pages_used           | count | pages of the buffer pool in use
mariadb.pool_miss_share           | share | pages asked of the buffer pool that had to be read from disk
mariadb.pool_pages_dirty          | count | pages of the buffer pool changed and not written yet
mariadb.pool_page_bytes           | bytes | size of a page
mariadb.log_write_requests        | 1/s   | writes to the redo log
mariadb.log_buffer_waits          | share | writes to the redo log that waited because the log buffer was too small
mariadb.checkpoint_age            | bytes | redo log since the last checkpoint
mariadb.checkpoint_max_age        | bytes | redo log that may lie since the last checkpoint
mariadb.temporary_tables          | 1/s   | temporary tables made
mariadb.disk_table_share          | share | temporary tables that were made on disk
mariadb.table_locks_immediate     | 1/s   | table locks given at once
mariadb.lock_wait_share           | share | table locks that waited
postgres.connections              | count | client connections open, of the fullest server
postgres.connections_allowed      | count | client connections allowed to ordinary users
postgres.max_connections          | count | client connections allowed, those kept for administrators included
postgres.connections_refused      | 1/s   | connections refused because all were taken
postgres.sessions                 | 1/s   | connections made
postgres.active                   | count | connections that work on a statement
postgres.idle_in_transaction      | count | connections that hold a transaction open and ask for nothing
postgres.lock_waiters             | count | connections that wait for a lock
postgres.waiting_lock             | s/s   | connections that wait for a lock, average
postgres.waiting_lwlock           | s/s   | connections that wait for the server's own short locks, average
postgres.waiting_io               | s/s   | connections that wait for data files, average
postgres.waiting_wal              | s/s   | connections that wait for the write-ahead log, average
postgres.commits                  | 1/s   | transactions committed
postgres.rollbacks                | 1/s   | transactions rolled back
postgres.deadlocks                | 1/s   | deadlocks
postgres.locks                    | count | locks in the shared table
postgres.lock_slots               | count | locks that the shared table has room for
postgres.blocks_hit               | 1/s   | pages found in the shared buffers
postgres.blocks_read              | 1/s   | pages that the shared buffers did not have
postgres.buffer_miss_share        | share | pages asked of the shared buffers that they did not have
postgres.temp_files               | 1/s   | temporary files made
postgres.temp_bytes               | bytes/s | bytes written to temporary files
postgres.spill_share              | share | transactions that spilled to a temporary file
postgres.checkpoints_timed        | 1/s   | checkpoints because it was time
postgres.checkpoints_requested    | 1/s   | checkpoints because the write-ahead log had grown
postgres.requested_share          | share | checkpoints that were requested
postgres.checkpoint_buffers       | 1/s   | pages written by checkpoints
postgres.cleaner_buffers          | 1/s   | pages written by the background writer
postgres.cleaner_stops            | 1/s   | times the background writer stopped because it had written too many
postgres.wal_records              | 1/s   | records written to the log
postgres.wal_pages                | 1/s   | whole pages written to the log, after checkpoints
postgres.wal_bytes                | bytes/s | bytes written to the log
postgres.wal_buffers_full         | 1/s   | times the log was written because its buffers were full
postgres.wal_since_checkpoint     | bytes | log since the last checkpoint began
postgres.checkpoint_distance      | bytes | log after which a checkpoint is requested
postgres.transaction_age          | count | transactions since the oldest number that is not frozen yet
postgres.transaction_age_limit    | count | transactions after which the server takes no more
postgres.autovacuum_workers       | count | autovacuum workers at work
postgres.autovacuum_max_workers   | count | autovacuum workers allowed
postgres.worker_processes         | count | background workers, parallel ones included
postgres.max_worker_processes     | count | background workers allowed
postgres.memory_at_full           | bytes | resident memory expected with every connection taken
postgres.memory_promised          | bytes | memory that the settings let the server take
postgres.max_connections.asked    | count | client connections asked for
postgres.shared_buffers.asked     | bytes | shared buffers asked for
postgres.work_mem.asked           | bytes | memory for each sort or hash asked for
postgres.maintenance_work_mem.asked | bytes | memory for each maintenance command asked for
postgres.autovacuum_max_workers.asked | count | autovacuum workers asked for
nginx.connections                 | count | client connections open, our own look included
nginx.reading                     | count | connections of which a request is read
nginx.writing                     | count | connections to which a response is written
nginx.waiting                     | count | connections that wait for a request
nginx.accepts                     | 1/s   | connections accepted
nginx.handled                     | 1/s   | connections accepted for which there was room
nginx.requests                    | 1/s   | requests of clients
nginx.connections_refused         | 1/s   | connections closed at once because a worker had no room for them
nginx.connections_reused          | 1/s   | times a worker closed idle connections to have room for others
nginx.descriptors_refused         | 1/s   | times a worker had no descriptor left for a file or a connection
nginx.workers                     | count | workers
nginx.worker_connections          | count | connections that each worker has room for (effective)
nginx.connections_allowed         | count | client connections for which no idle one is closed
nginx.worker_open_files           | count | open files of the worker that has most
nginx.worker_rlimit_nofile        | count | RLIMIT_NOFILE (soft) of a worker
nginx.worker_cpu                  | s/s   | CPU time of a worker, average
nginx.worker_blocked              | s/s   | time in which a worker waited for a disk, average
nginx.files_wanted                | count | files that a worker wants with all its connections taken
nginx.connection_share            | share | connections made per request
nginx.fetches                     | 1/s   | requests that the cache passed on to its origin
squid.requests                    | 1/s   | requests of clients
squid.hits                        | 1/s   | requests answered from the cache
squid.misses                      | 1/s   | requests for what the cache did not have
squid.requests_failed             | 1/s   | requests of clients that failed
squid.fetches                     | 1/s   | requests that the cache passed on to its origin
squid.fetches_failed              | 1/s   | fetches that failed
squid.disk_reads                  | 1/s   | objects read from the disk, two are counted for each
squid.disk_writes                 | 1/s   | objects written to the disk
squid.not_in_memory               | 1/s   | fetches, and reads from the disk
squid.evictions                   | 1/s   | objects dropped from the disk to make room
squid.objects_on_disk             | count | objects on the disk
squid.disk_files_open             | count | open files of objects on the disk
squid.memory_used                 | bytes | memory for objects in use
squid.memory_size                 | bytes | memory for objects (effective)
squid.disk_used                   | bytes | disk space in use
squid.disk_allowed                | bytes | disk space from which on objects are dropped
squid.descriptors                 | count | open descriptors
squid.descriptors_allowed         | count | open descriptors with which clients are still accepted
squid.client_connections          | count | connections of clients
squid.client_connections_allowed  | count | connections that clients may have
squid.connections_refused         | 1/s   | connections closed at once because a client had too many
squid.descriptors_short           | 1/s   | times nobody was accepted for want of descriptors, one in 15 s is told
varnish.requests                  | 1/s   | requests of clients
varnish.hits                      | 1/s   | requests answered from the cache
varnish.misses                    | 1/s   | requests for what the cache did not have
varnish.fetches                   | 1/s   | requests that the cache passed on to its origin
varnish.fetches_failed            | 1/s   | fetches that failed
varnish.evictions                 | 1/s   | objects dropped from the cache to make room
varnish.evictions_limited         | 1/s   | times more would have had to be dropped than nuke_limit allows
varnish.threads                   | count | worker threads
varnish.threads_allowed           | count | worker threads allowed: thread_pools times thread_pool_max
varnish.threads_limited           | 1/s   | times a thread was wanted and none more was allowed
varnish.threads_failed            | 1/s   | threads that could not be made
varnish.thread_queue              | count | requests that wait for a thread
varnish.sessions_queued           | 1/s   | sessions that had to wait for a thread
varnish.sessions_dropped          | 1/s   | sessions dropped because no thread was free
varnish.requests_dropped          | 1/s   | requests dropped because too many waited for a thread
varnish.sessions_failed           | 1/s   | connections that could not be accepted
varnish.descriptors_refused       | 1/s   | connections not accepted for want of a descriptor
varnish.objects                   | count | objects in the cache
varnish.storage_used              | bytes | storage in use
varnish.storage_free              | bytes | storage that is free
varnish.storage_size              | bytes | storage (effective)
mariadb.prepared_statements       | count | prepared statements kept
mariadb.max_prepared_stmt_count   | count | prepared statements allowed (effective)
""")

_CAGED = """
cage.cpu                     | cores   | CPU of the control group of {}
cage.cpu.limit               | cores   | CPU time that the cage of {} allows
cage.cpu.utilization         | share   | CPU time of {}, of what its cage allows
cage.cpu.throttled           | 1/s     | scheduler periods in which the CPU quota of {} ran out
cage.cpu.throttled_share     | share   | time in scheduler periods in which the CPU quota of {} ran out
cage.cpu.throttled_time      | s/s     | time for which CPUs were denied to {}, all CPUs together
cage.memory.usage            | bytes   | memory in the control group of {}, page cache included, largest
cage.memory.peak             | bytes   | most memory in the control group of {} since it was made
cage.memory.limit            | bytes   | memory that the cage of {} allows
cage.memory.hits             | 1/s     | times the cage of {} had no memory left and something had to go
cage.memory.refaults         | 1/s     | file pages of {} read again soon after they were dropped
cage.memory.oom_kills        | 1/s     | processes of {} ended because the cage had no memory left
cage.read_bytes              | bytes/s | bytes read from the disk by {}
cage.read_bytes.limit        | bytes/s | bytes read from the disk by {}, as its cage allows
cage.read_bytes.utilization  | share   | bytes read from the disk by {}, of what its cage allows
cage.write_bytes             | bytes/s | bytes written to the disk by {}
cage.write_bytes.limit       | bytes/s | bytes written to the disk by {}, as its cage allows
cage.write_bytes.utilization | share   | bytes written to the disk by {}, of what its cage allows
cage.reads                   | 1/s     | disk reads of {}
cage.reads.limit             | 1/s     | disk reads of {}, as its cage allows
cage.reads.utilization       | share   | disk reads of {}, of what its cage allows
cage.writes                  | 1/s     | disk writes of {}
cage.writes.limit            | 1/s     | disk writes of {}, as its cage allows
cage.writes.utilization      | share   | disk writes of {}, of what its cage allows
cage.pids                    | count   | processes and threads of {}
cage.pids.limit              | count   | processes and threads that the cage of {} allows
cage.pids.refused            | 1/s     | processes and threads that the cage refused {}
cage.pressure.cpu.some       | share   | time in which some task of {} waited for a CPU
cage.pressure.memory.some    | share   | time in which some task of {} waited for memory
cage.pressure.io.some        | share   | time in which some task of {} waited for I/O
"""
"""What a component used of its cage, by the end of the metric's name."""


def _caged(component: str, words: str) -> str:
    return "".join(f"{component}.{row}\n" for row in _CAGED.replace("{}", words).strip().splitlines())


register(_caged("target", "the target") + _caged("driver", "the load driver"))

IN_FRONT = ("loader",)
"""Components in front of a target's shards; each has a cage with limits of its own."""
MOST_SHARDS = 16
"""Enough for any machine that one command measures."""
_OF_EACH_PIECE = tuple(
    f"target.{part}"
    for part in ("cage.", "cpu.", "threads.", "open_files", "memory.rss", "io.", "paging.", "context_switches.")
)


def _register_pieces() -> None:
    """What the recorder sees of the target, of each of its pieces."""
    whole = [metric for metric in METRICS.values() if metric.name.startswith(_OF_EACH_PIECE)]
    pieces = {f"shard{number}": f"shard {number}" for number in range(1, MOST_SHARDS + 1)}
    pieces |= {name: f"the {name}" for name in IN_FRONT}
    for piece, words in pieces.items():
        for metric in whole:
            name = metric.name.replace("target", piece, 1)
            METRICS[name] = Metric(name, metric.unit, metric.what.replace("the target", words))


_register_pieces()


def _conventions(rows: str) -> dict[str, str]:
    return dict(tuple(cell.strip() for cell in row.split("|")) for row in rows.strip().splitlines())  # type: ignore[misc]


CONVENTIONS = _conventions("""
system.cpu.utilization            | system.cpu.utilization
system.cpu.user                   | system.cpu.utilization{cpu.mode="user"}
system.cpu.system                 | system.cpu.utilization{cpu.mode="system"}
system.cpu.iowait                 | system.cpu.utilization{cpu.mode="iowait"}
system.cpu.steal                  | system.cpu.utilization{cpu.mode="steal"}
system.cpu.count                  | system.cpu.logical.count
system.cpu.frequency              | system.cpu.frequency
system.processes.created          | system.process.created
system.memory.available           | system.memory.linux.available
system.memory.limit               | system.memory.limit
system.memory.utilization         | system.memory.utilization
system.memory.used                | system.memory.usage{system.memory.state="used"}
system.paging.major_faults        | system.paging.faults{system.paging.fault.type="major"}
system.paging.swap_in             | system.paging.operations{system.paging.direction="in"}
system.paging.swap_out            | system.paging.operations{system.paging.direction="out"}
system.disk.busy                  | system.disk.io_time
system.disk.reads                 | system.disk.operations{disk.io.direction="read"}
system.disk.writes                | system.disk.operations{disk.io.direction="write"}
system.disk.read_bytes            | system.disk.io{disk.io.direction="read"}
system.disk.write_bytes           | system.disk.io{disk.io.direction="write"}
COMPONENT.cpu.cores               | process.cpu.time
COMPONENT.cpu.user_cores          | process.cpu.time{cpu.mode="user"}
COMPONENT.cpu.system_cores        | process.cpu.time{cpu.mode="system"}
COMPONENT.cpu.utilization         | process.cpu.utilization
COMPONENT.threads.count           | process.thread.count
COMPONENT.open_files              | process.unix.file_descriptor.count
COMPONENT.memory.rss              | process.memory.usage
COMPONENT.io.read_bytes           | process.disk.io{disk.io.direction="read"}
COMPONENT.io.write_bytes          | process.disk.io{disk.io.direction="write"}
COMPONENT.paging.major_faults     | process.paging.faults{system.paging.fault.type="major"}
COMPONENT.paging.minor_faults     | process.paging.faults{system.paging.fault.type="minor"}
COMPONENT.context_switches.voluntary   | process.context_switches{process.context_switch.type="voluntary"}
COMPONENT.context_switches.involuntary | process.context_switches{process.context_switch.type="involuntary"}
COMPONENT.cage.cpu                | container.cpu.usage
COMPONENT.cage.memory.usage       | container.memory.usage
COMPONENT.cage.read_bytes         | container.disk.io{disk.io.direction="read"}
COMPONENT.cage.write_bytes        | container.disk.io{disk.io.direction="write"}
""")
"""Our name -> the name and attributes of OpenTelemetry's semantic conventions for the same thing. Ours are flat,
because a metric's name alone has to say what it is; COMPONENT is target, driver or a piece of the target, which they
have as a resource. Where theirs is a counter (cpu.time, io, operations, faults), ours is its growth per second."""


def convention(metric: str) -> str | None:
    """The name of the semantic conventions for a metric; None where they have none."""
    component, _, rest = metric.partition(".")
    general = f"COMPONENT.{rest}" if component.startswith(("target", "driver", "shard", *IN_FRONT)) else metric
    return CONVENTIONS.get(general)


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
        case "Hz":
            return f"{value / 1e9:.3g} GHz"
        case "1/s":
            return f"{_short(value)}/s"
        case "count" | "":
            return _short(value)
        case _:
            return f"{_short(value)} {unit}"


def show_metric(metric: str, value: float) -> str:
    """A metric's value as people read it."""
    return show(value, METRICS[metric].unit if metric in METRICS else "")
