"""nginx, Varnish and Squid pass the suite that every target passes."""

from __future__ import annotations

import pytest

from loadframe.testing.targets import *  # noqa: F403
from loadframe.testing.targets import Example

pytestmark = pytest.mark.server
EXAMPLES = {
    "nginx": Example(
        start={"worker_connections": 64, "sendfile": True},
        dynamic={"worker_connections": 96, "worker_processes": 2, "keepalive_timeout": "5s", "listen_backlog": 100},
        restart={"worker-connections": 96, "listen_reuseport": "on", "open_file_cache_max": 10, "directio": "4M"},
        misspelt=("worker_connection", "worker_connections"),
        wrong={"aio": "sometimes"},
        impossible={"read_ahead": 10**20 - 1},
    ),
    "nginx-cache": Example(
        start={"worker_connections": 64, "sendfile": True},
        dynamic={"worker_connections": 96, "proxy_cache_valid": "10min", "proxy_buffers_size": "16k"},
        restart={"proxy-cache-keys": "1M", "proxy_cache_lock": "off", "listen_reuseport": "on"},
        misspelt=("proxy_cache_key", "proxy_cache_keys"),
        wrong={"proxy_cache_min_uses": 0},
        impossible={"proxy_buffers_number": 2, "proxy_buffers_size": "1k"},
    ),
    "varnish": Example(
        start={"storage_kind": "file", "storage_size": "16M"},
        dynamic={"storage_kind": "file", "storage_size": "16M", "default_grace": 5, "http_gzip_support": "off"},
        restart={"storage-kind": "malloc", "thread_pools": 1, "vsl_space": "4M"},
        misspelt=("thread_pool", "thread_pools"),
        wrong={"storage_kind": "disk"},
        impossible={"thread_pool_min": 200, "thread_pool_max": 100},
    ),
    "squid": Example(
        start={"cache_dir_kind": "aufs", "cache_mem": "16M"},
        dynamic={"cache_dir_kind": "aufs", "cache_mem": "8M", "read_ahead_gap": "64k", "collapsed_forwarding": "on"},
        restart={"cache-dir-kind": "rock", "cache_dir_size": "20M", "memory_replacement_policy": "heap lfuda"},
        misspelt=("cache_memory", "cache_mem"),
        wrong={"cache_dir_kind": "disk"},
        impossible={"cache_mem": 10**20 - 1},
    ),
}


@pytest.fixture(scope="module", params=EXAMPLES)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def example(kind: str) -> Example:
    return EXAMPLES[kind]
