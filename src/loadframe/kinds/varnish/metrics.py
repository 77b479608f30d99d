"""What Varnish counts."""

from __future__ import annotations

from loadframe.knowledge.metric import requests

ROWS = """
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

AGREEMENTS = (requests("varnish.requests", also=("varnish.",)),)
