"""The machine as a whole, and what all requests together came to."""

from __future__ import annotations

ROWS = """
throughput                        | 1/s   | requests done per second
system.cpu.utilization            | share | all CPUs busy
system.cpu.user                   | share | CPU time in user space
system.cpu.system                 | share | CPU time in the kernel
system.cpu.iowait                 | share | CPU idle while I/O was outstanding
system.cpu.steal                  | share | CPU time the hypervisor gave to other machines
system.cpu.busiest                | share | the busiest CPU
system.cpu.own                    | share | CPU time of the target and the driver, of all CPUs
system.cpu.foreign                | share | CPU time of processes outside the study
system.cpu.count                  | count | CPUs online
system.cpu.frequency              | Hz    | speed of the fastest CPU, average
system.cpu.frequency_drop         | share | the fastest CPU's speed, lowest below highest
system.cpu.throttles              | 1/s   | times a CPU was slowed down because it was hot
system.clock.step                 | s     | the wall clock was set by this much
system.stall.share                | share | time in which no tick could be recorded: the machine stalled
system.stall.longest_ms           | ms    | longest time without a tick
system.network.retransmits        | 1/s   | TCP segments sent again
system.network.delayed_acks       | 1/s   | acknowledgements that TCP sent late because nothing else was to be sent
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
system.disk.working               | share | the busiest disk had requests outstanding or flushed its cache
system.disk.queue                 | count | requests outstanding on the busiest disk, average
system.disk.reads                 | 1/s   | disk reads
system.disk.writes                | 1/s   | disk writes
system.disk.read_bytes            | bytes/s | disk bytes read
system.disk.write_bytes           | bytes/s | disk bytes written
system.disk.flushes               | 1/s   | cache flushes the disk completed (one or more per fsync)
system.disk.flush_ms              | ms    | time per cache flush
system.disk.stall_ms              | ms    | longest time in which the disk had requests and ended none
system.disk.flushes_per_request   | count | disk cache flushes per request of the workload
system.pressure.cpu.some          | share | time in which some task waited for a CPU
system.pressure.memory.some       | share | time in which some task waited for memory
system.pressure.memory.full       | share | time in which all tasks waited for memory
system.pressure.io.some           | share | time in which some task waited for I/O
system.pressure.io.full           | share | time in which all tasks waited for I/O
system.files.allocated            | count | open files on the whole machine
system.files.limit                | count | fs.file-max
system.cpu.softirq_busiest        | share | the CPU with most interrupt work
system.cpu.frequency_missing      | share | highest frequency that the CPUs did not run at, average
system.cpu.frequency_lost         | share | speed that busy CPUs did not get
system.cpu.throttled              | share | time for which a CPU was slowed because of heat
system.swap.used                  | bytes | swap space in use
system.swap.limit                 | bytes | swap space
system.memory.unwritten           | bytes | dirty pages and pages under writeback
system.memory.dirty_limit         | bytes | dirty pages at which writers are stopped
system.paging.background_scan     | 1/s   | pages scanned by the kernel's own reclaim
system.paging.direct_share        | share | page scanning done by direct reclaim
system.paging.refault_share       | share | bytes read from disks that were dropped a short while ago
system.paging.refault_wait        | share | time in which tasks waited for pages dropped a short while ago
system.disk.flushing              | share | the disk that flushes most emptied its cache
system.disk.queue_fullest         | count | requests outstanding on the disk whose queue is fullest, average
system.disk.queue_limit           | count | requests that this disk queues
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
system.network.local_ports.share  | share | local ports in use of all for the destination with most connections
system.network.local_ports.per_second | 1/s | connections to one destination that local ports allow
system.network.others             | bytes/s | traffic through a link of the load that is not of it
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
"""
"""name | unit | what."""
