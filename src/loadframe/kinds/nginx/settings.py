"""nginx as data: its settings, where each stands in the configuration, and its counters.

Contexts, defaults and meanings were read from nginx's documentation of 1.22 (nginx.org/en/docs, the module named as the
source); what an installed nginx does not take it says itself (`nginx -t`). A directive with several values is several
settings here, named directive_value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from loadframe.kinds.catalogue import Catalogue, count, gauge, specs_from
from loadframe.kinds.tunable import SWITCH, Tunable

MOST = 2**31 - 1
Context = Literal["main", "events", "http", "listen", "cache", "proxy"]

_core, _http, _proxy = (specs_from(f"ngx_{module}_module") for module in ("core", "http_core", "http_proxy"))


CATALOGUE = Catalogue(
    kind="nginx",
    source="The settings are nginx's directives; those of several values are named directive_value.",
    specs=(
        # workers, and what each may hold
        _core("worker_processes", "integer", True, 1, MOST, 1, takes="a process, and worker_connections in each"),
        _core("worker_rlimit_nofile", "integer", True, 1, MOST),
        _core(
            "worker_connections", "integer", True, 1, MOST, 512,
            takes="memory for each in every worker, from the start",
        ),
        _core("multi_accept", "boolean", True, default=False),
        _core("accept_mutex", "boolean", True, default=False),
        _core("accept_mutex_delay", "duration", True, 1, MOST, 500, unit="ms"),
        _core("thread_pool_threads", "integer", True, 1, MOST, 32, takes="a thread for each in every worker"),
        _core("thread_pool_max_queue", "integer", True, 1, MOST, 65536),
        # how it listens
        _http("listen_backlog", "integer", True, 1, MOST, 511),
        _http("listen_reuseport", "boolean", False, default=False),
        # connections
        _http("keepalive_timeout", "duration", True, 0, MOST, 75, unit="s"),
        _http("keepalive_requests", "integer", True, 1, MOST, 1000),
        _http("keepalive_time", "duration", True, 1, MOST, 3600, unit="s"),
        _http("send_timeout", "duration", True, 1, MOST, 60, unit="s"),
        _http("client_header_timeout", "duration", True, 1, MOST, 60, unit="s"),
        _http("reset_timedout_connection", "boolean", True, default=False),
        _http("tcp_nopush", "boolean", True, default=False),
        _http("tcp_nodelay", "boolean", True, default=True),
        # how files are read and sent
        _http("sendfile", "boolean", True, default=False),
        _http("sendfile_max_chunk", "bytes", True, 0, default=2 << 20),
        _http("aio", "text", True, default="off", choices=("off", "threads")),
        _http("directio", "bytes", True, -1, default=-1),
        _http("directio_alignment", "bytes", True, 512, default=512),
        _http("output_buffers_number", "integer", True, 1, MOST, 2),
        _http(
            "output_buffers_size", "bytes", True, 1, default=32 << 10, takes="memory for each buffer of each response",
        ),
        _http("postpone_output", "bytes", True, 0, default=1460),
        _http("read_ahead", "bytes", True, 0, default=0),
        _http("open_file_cache_max", "integer", True, 0, MOST, 0, takes="a descriptor for each file, in every worker"),
        _http("open_file_cache_inactive", "duration", True, 1, MOST, 60, unit="s"),
        _http("open_file_cache_valid", "duration", True, 1, MOST, 60, unit="s"),
        _http("open_file_cache_min_uses", "integer", True, 1, MOST, 1),
        _http("open_file_cache_errors", "boolean", True, default=False),
        _http("etag", "boolean", True, default=True),
        # rates
        _http("limit_rate", "bytes", True, 0, default=0),
        _http("limit_rate_after", "bytes", True, 0, default=0),
        # nginx's own default is on: a private instance would fill the disk with it
        _http("access_log", "boolean", True, default=False, source="ngx_http_log_module; off is ours"),
    ),
)  # fmt: skip
"""dynamic: workers that a reload starts take the new value."""


CACHE_CATALOGUE = Catalogue(
    kind="nginx-cache",
    source=CATALOGUE.source,
    specs=(
        *CATALOGUE.specs,
        _proxy("proxy_cache_max_size", "bytes", True, 1 << 20, default=1 << 40, takes="this much disk space"),
        _proxy(
            "proxy_cache_keys",
            "bytes",
            False,
            64 << 10,
            default=10 << 20,
            takes="shared memory: about 8,000 keys for each MiB",
        ),
        _proxy("proxy_cache_inactive", "duration", True, 1, MOST, 86400, unit="s"),
        _proxy("proxy_cache_valid", "duration", True, 1, MOST, 86400, unit="s"),
        _proxy("proxy_cache_min_uses", "integer", True, 1, MOST, 1),
        _proxy("proxy_cache_lock", "boolean", True, default=True),
        _proxy("proxy_buffers_number", "integer", True, 2, MOST, 8),
        _proxy(
            "proxy_buffers_size",
            "bytes",
            True,
            1 << 10,
            default=8 << 10,
            takes="memory for each buffer of each fetch",
        ),
    ),
)
"""A cache before an origin. proxy_cache_max_size, _inactive, _valid and _lock: nginx's own defaults are none, 10
minutes, none and off; ours have nothing go stale or be fetched twice in the middle of a study."""


@dataclass(frozen=True, slots=True)
class Directive:
    """A line of the configuration: where it stands, and its form with the names of its settings in braces. off: the
    setting whose default leaves the directive out."""

    context: Context
    form: str
    off: str = ""


def _alone(context: Context, *names: str) -> tuple[Directive, ...]:
    return tuple(Directive(context, f"{name} {{{name}}}") for name in names)


DIRECTIVES: tuple[Directive, ...] = (
    *_alone("main", "worker_processes", "worker_rlimit_nofile"),
    Directive("main", "thread_pool default threads={thread_pool_threads} max_queue={thread_pool_max_queue}"),
    *_alone("events", "worker_connections", "multi_accept", "accept_mutex", "accept_mutex_delay"),
    Directive("listen", "backlog={listen_backlog}"),
    Directive("listen", "{listen_reuseport}", off="listen_reuseport"),
    *_alone(
        "http", "keepalive_timeout", "keepalive_requests", "keepalive_time", "send_timeout", "client_header_timeout",
        "reset_timedout_connection", "tcp_nopush", "tcp_nodelay", "sendfile", "sendfile_max_chunk", "aio", "directio",
        "directio_alignment", "postpone_output", "read_ahead", "open_file_cache_valid", "open_file_cache_min_uses",
        "open_file_cache_errors", "etag", "limit_rate", "limit_rate_after",
    ),
    Directive("http", "output_buffers {output_buffers_number} {output_buffers_size}"),
    Directive(
        "http",
        "open_file_cache max={open_file_cache_max} inactive={open_file_cache_inactive}",
        off="open_file_cache_max",
    ),
    Directive(
        "cache",
        "keys_zone=loadframe:{proxy_cache_keys} max_size={proxy_cache_max_size} inactive={proxy_cache_inactive}",
    ),
    *_alone("proxy", "proxy_cache_min_uses", "proxy_cache_lock"),
    Directive("proxy", "proxy_cache_valid 200 {proxy_cache_valid}"),
    Directive("proxy", "proxy_buffers {proxy_buffers_number} {proxy_buffers_size}"),
)  # fmt: skip


_gauge, _count = partial(gauge, "nginx"), partial(count, "nginx")
STATUS = (
    *(_gauge(name) for name in ("connections", "reading", "writing", "waiting")),
    *(_count(name) for name in ("accepts", "handled", "requests")),
)
"""stub_status (ngx_http_stub_status_module). Our own look is counted too."""

CEILINGS = tuple(
    _gauge(name)
    for name in (
        "workers", "worker_connections", "connections_allowed", "worker_rlimit_nofile", "worker_open_files",
    )
)  # fmt: skip
"""How many workers there are, the connections of each, and how many clients have before idle ones are closed; the
descriptors that a worker may have, and those of the one that has most."""

WORK = (_count("worker_cpu"), _count("worker_blocked"))
"""Seconds of CPU, and in uninterruptible sleep, of a worker: the average of all. The latter adds up how many were so at
each look, over the time since the look before."""

LOGGED = tuple(_count(name) for name in ("connections_refused", "connections_reused", "descriptors_refused"))
"""Counted in the error log, as nginx keeps no counter of them."""

TUNABLES = (
    Tunable("sendfile", values=SWITCH),
    Tunable("tcp_nopush", values=SWITCH),
    Tunable("multi_accept", values=SWITCH),
    Tunable("keepalive_requests", values=(100, 1000, 10_000, 100_000)),
    Tunable("aio", values=("off", "threads")),
)
"""What a search may vary, and how far; the most promising first."""
