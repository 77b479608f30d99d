"""What Squid counts."""

from __future__ import annotations

from loadframe.knowledge.metric import requests

ROWS = """
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
squid.descriptors_short           | 1/s   | times no client was accepted for want of descriptors; one in 15 s is logged
"""
"""name | unit | what."""

AGREEMENTS = (requests("squid.requests", also=("squid.",)),)
