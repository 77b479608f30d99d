"""What nginx, Squid and Varnish count."""

from __future__ import annotations

ROWS = """
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
"""
"""name | unit | what."""
