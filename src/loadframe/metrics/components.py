"""The target, the load driver, the recorder and the workload."""

from __future__ import annotations

ROWS = """
target.saturation                 | share | CPU time of the target, of all that it may use
target.cpu.cores                  | cores | CPU of the target
target.cpu.user_cores             | cores | CPU of the target in user space
target.cpu.system_cores           | cores | CPU of the target in the kernel
target.cpu.limit                  | cores | CPUs that the target may use
target.cpu.utilization            | share | share of its CPUs in use by the target
target.cpu.hottest_thread         | cores | the target's busiest thread
target.cpu.busiest_process        | cores | the target's busiest process, with all of its threads
target.cpu.busiest_threads        | count | threads over which that is spread: n for n alike, 1 where one has all
target.cpu.one_at_a_time          | share | that process is run by an interpreter with one lock for all its threads
target.cpu.thread_cores           | cores | CPU of the target's threads, added up
target.cpu.run_delay              | s/s   | time the target's threads were runnable and waited for a CPU
target.parts_lost                 | count | parts of the target that had ended while the others went on
target.processes.count            | count | processes of the target
target.threads.count              | count | threads of the target
target.threads.running            | count | of these running or runnable, average
target.threads.blocked            | count | of these in uninterruptible sleep (D), average
target.threads.sleeping           | count | of these in interruptible sleep (S), average
target.threads.polling            | count | of these asleep in a timer: waiting by sleep and retry
target.waits.running              | count | threads of the target on a CPU, average
target.waits.runnable             | count | threads of the target that could run and had no CPU, average
target.waits.disk                 | count | threads of the target in uninterruptible sleep, mostly for a disk, average
target.waits.network              | count | threads of the target that waited for the other end of a connection, average
target.waits.idle                 | count | threads of the target that waited for the next request or event, average
target.waits.socket               | count | threads of the target that waited for a socket, which is not known, average
target.waits.futex                | count | threads of the target in a futex: a lock, a condition, an idle pool, average
target.waits.sleeping             | count | threads of the target that slept for a time, average
target.waits.other                | count | threads of the target that waited for something else, average
target.waits.unknown              | count | threads of the target of which the kernel does not say what they waited for
target.peers.connections          | count | connections that the target made, average
target.peers.connections_most     | count | connections that the target made, most at once
target.peers.busy                 | count | of these with a request on its way, average
target.peers.busy_most            | count | of these with a request on its way, most at once
target.served.connections         | count | connections that the target accepted, average
target.served.connections_most    | count | connections that the target accepted, most at once
target.served.busy                | count | of these with a request that is not answered, average
target.served.busy_most           | count | of these with a request that is not answered, most at once
target.open_files                 | count | open files of the target's process that is nearest to its limit
target.open_files.share           | share | open files of that process, of all that it may have
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
driver.cpu.thread_cores           | cores | CPU of the driver's threads, added up
driver.cpu.run_delay              | s/s   | time the driver's threads waited for a CPU
driver.cpu.beside                 | share | CPUs that the target may use, in use by the load driver
driver.saturation                 | share | CPU time of the driver of all it may use, or its busiest thread of one CPU
driver.waits.running              | count | threads of the driver on a CPU, average
driver.waits.runnable             | count | threads of the driver that could run and had no CPU, average
driver.waits.disk                 | count | threads of the driver in uninterruptible sleep, average
driver.waits.network              | count | threads of the driver that waited for the other end of a connection, average
driver.waits.idle                 | count | threads of the driver that waited for the next event, average
driver.waits.socket               | count | threads of the driver that waited for a socket, which is not known, average
driver.waits.futex                | count | threads of the driver in a futex, average
driver.waits.sleeping             | count | threads of the driver that slept for a time, average
driver.waits.other                | count | threads of the driver that waited for something else, average
driver.waits.unknown              | count | threads of the driver of which the kernel does not say what they waited for
driver.processes.count            | count | processes of the driver
driver.threads.count              | count | threads of the driver
driver.open_files                 | count | open files of the driver's process that has most
driver.memory.rss                 | bytes | resident memory of the driver, largest
recorder.cpu.cores                | cores | CPU of Loadframe's own recorder
recorder.tick_gap                 | ms    | time since the tick before: a stalled machine shows as a gap
workload.driver_lag               | share | part of the requests' time in which the load driver waited for a CPU
workload.cpu_wait                 | share | part of the requests' time, waits in line left out, without a CPU to run on
workload.cpus_busy                | share | CPUs that the target or the driver may use, in use by any process, at most
workload.lock_held                | share | of the window in which one request held the lock that only one can hold
workload.lock_waiting             | count | requests waiting for that lock, average
workload.latency_delayed_ack_share | share | requests that took 38 to 48 ms, as long as an acknowledgement is delayed
workload.latency_delayed_ack_contrast | count | these over those of 28 to 38 ms or of 58 to 68 ms, whichever are more
workload.stages                   | count | stages of the pipeline that the load driver itself is
workload.errors                   | 1/s   | requests that failed
workload.bytes                    | bytes/s | bytes of the bodies that arrived
workload.offered                  | 1/s   | requests that should have begun, in an open loop
workload.concurrency              | count | requests in progress, average
workload.in_service               | count | requests in service at once: throughput x response time at the lowest load
workload.cost_growth              | count | cost of a request at equal levels, at the end as times that at first
workload.response_ms              | ms    | mean response time
workload.at_peer_ms               | ms    | time a request spends at a peer: busy connections to it / throughput
workload.silence_ms               | ms    | longest time in which no request was done
target.open_files.hard_limit      | count | RLIMIT_NOFILE (hard) of that process
target.memory.shared              | bytes | shared memory that the target's processes have touched
target.mappings                   | count | memory mappings of the target's process
target.cpus.named                 | count | CPUs that the affinity of the target's process names
target.cpus.allowed               | count | CPUs the target's process may use: those named, as far as there are
target.cpus.busy                  | share | CPUs that the target may use, in use by any process
target.cpus.wait                  | share | time in which the target's threads could run, spent waiting for a CPU
target.epoll_watches              | count | files that the target's process watches by epoll
target.inotify_watches            | count | files that the target watches by inotify
target.inotify_instances          | count | inotify instances of the target
target.accept_queue               | count | connections waiting in its fullest accept queue
target.accept_queue.limit         | count | connections that may wait there
target.accept_queue.share         | share | connections waiting in its fullest accept queue, of all that may wait there
target.accept_queue.waiting       | count | connections waiting in all of its accept queues, average
target.runtime.gc_cpu_share       | share | CPU time of the target that its garbage collector's threads used
target.runtime.gc_sampled_share   | share | CPU time of the target in functions of a garbage collector, in a profile
target.runtime.gc_sampled_cores   | cores | CPUs that functions of a garbage collector used in a profile of the target
target.runtime.heap_live          | bytes | heap in use at its least, which the live objects do not exceed
target.runtime.heap_live_share    | share | heap in use at its least, of all that the runtime lets it have
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
target.requests                   | 1/s   | requests that the service itself counted
target.runtime.gc_share           | s/s   | time that the service's garbage collectors took
target.runtime.heap_use           | bytes | heap in use, as the service's runtime tells it, largest
target.runtime.heap_ceiling       | bytes | the most that the runtime lets the heap have
"""
"""name | unit | what."""
