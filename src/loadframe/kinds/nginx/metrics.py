"""What nginx counts, as a web server and as a cache."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived, requests, share

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
"""
"""name | unit | what."""

DERIVED = (
    Derived("nginx.files_wanted", ("nginx.worker_connections",), lambda each: 2 * each),
    Derived("nginx.connection_share", ("nginx.accepts", "nginx.requests"), share),
)

AGREEMENTS = (requests("nginx.requests", also=("nginx.accepts", "nginx.handled")),)
