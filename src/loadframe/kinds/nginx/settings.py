"""nginx as data: its settings, where each stands in the configuration, and its counters.

Contexts, defaults and meanings were read from nginx's documentation of 1.22 (nginx.org/en/docs, the module named as the
source); what an installed nginx does not take it says itself (`nginx -t`). A directive with several values is several
settings here, named directive_value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loadframe.kinds.catalogue import Catalogue, SettingSpec
from loadframe.model import CounterSpec

MOST = 2**31 - 1
Context = Literal["main", "events", "http", "listen", "cache", "proxy"]

CORE, HTTP = "ngx_core_module", "ngx_http_core_module"


def _integer(
    name: str, module: str, low: int, default: int | None, *, dynamic: bool = True, takes: str | None = None
) -> SettingSpec:
    return SettingSpec(name, "integer", dynamic, low, MOST, (), default, source=module, takes=takes)


def _switch(name: str, module: str, default: bool, *, dynamic: bool = True) -> SettingSpec:
    return SettingSpec(name, "boolean", dynamic, default=default, source=module)


def _bytes(name: str, module: str, low: int, default: int, *, takes: str | None = None) -> SettingSpec:
    return SettingSpec(name, "bytes", True, low, None, (), default, source=module, takes=takes)


def _duration(name: str, module: str, unit: str, low: int, default: int) -> SettingSpec:
    return SettingSpec(name, "duration", True, low, MOST, (), default, source=module, unit=unit)


CATALOGUE = Catalogue(
    kind="nginx",
    source="The settings are nginx's directives; those of several values are named directive_value.",
    specs=(
        # workers, and what each may hold
        _integer("worker_processes", CORE, 1, 1, takes="a process, and worker_connections in each"),
        _integer("worker_rlimit_nofile", CORE, 1, None),
        _integer(
            "worker_connections", CORE, 1, 512,
            takes="memory for each in every worker, from the start",
        ),
        _switch("multi_accept", CORE, False),
        _switch("accept_mutex", CORE, False),
        _duration("accept_mutex_delay", CORE, "ms", 1, 500),
        _integer("thread_pool_threads", CORE, 1, 32, takes="a thread for each in every worker"),
        _integer("thread_pool_max_queue", CORE, 1, 65536),
        # how it listens
        _integer("listen_backlog", HTTP, 1, 511),
        _switch("listen_reuseport", HTTP, False, dynamic=False),
        # connections
        _duration("keepalive_timeout", HTTP, "s", 0, 75),
        _integer("keepalive_requests", HTTP, 1, 1000),
        _duration("keepalive_time", HTTP, "s", 1, 3600),
        _duration("send_timeout", HTTP, "s", 1, 60),
        _duration("client_header_timeout", HTTP, "s", 1, 60),
        _switch("reset_timedout_connection", HTTP, False),
        _switch("tcp_nopush", HTTP, False),
        _switch("tcp_nodelay", HTTP, True),
        # how files are read and sent
        _switch("sendfile", HTTP, False),
        _bytes("sendfile_max_chunk", HTTP, 0, 2 << 20),
        SettingSpec("aio", "text", True, None, None, ("off", "threads"), "off", source=HTTP),
        _bytes("directio", HTTP, -1, -1),
        _bytes("directio_alignment", HTTP, 512, 512),
        _integer("output_buffers_number", HTTP, 1, 2),
        _bytes("output_buffers_size", HTTP, 1, 32 << 10, takes="memory for each buffer of each response"),
        _bytes("postpone_output", HTTP, 0, 1460),
        _bytes("read_ahead", HTTP, 0, 0),
        _integer("open_file_cache_max", HTTP, 0, 0, takes="a descriptor for each file, in every worker"),
        _duration("open_file_cache_inactive", HTTP, "s", 1, 60),
        _duration("open_file_cache_valid", HTTP, "s", 1, 60),
        _integer("open_file_cache_min_uses", HTTP, 1, 1),
        _switch("open_file_cache_errors", HTTP, False),
        _switch("etag", HTTP, True),
        # rates
        _bytes("limit_rate", HTTP, 0, 0),
        _bytes("limit_rate_after", HTTP, 0, 0),
        # nginx's own default is on: a private instance would fill the disk with it
        SettingSpec("access_log", "boolean", True, default=False, source="ngx_http_log_module; off is ours"),
    ),
)  # fmt: skip
"""dynamic: workers that a reload starts take the new value."""


PROXY = "ngx_http_proxy_module"

CACHE_CATALOGUE = Catalogue(
    kind="nginx-cache",
    source=CATALOGUE.source,
    specs=(
        *CATALOGUE.specs,
        _bytes("proxy_cache_max_size", PROXY, 1 << 20, 1 << 40, takes="this much disk space"),
        SettingSpec(
            "proxy_cache_keys",
            "bytes",
            False,  # a reload that changes the size of shared memory is refused
            64 << 10,
            None,
            (),
            10 << 20,
            source=PROXY,
            takes="shared memory: about 8,000 keys for each MiB",
        ),
        _duration("proxy_cache_inactive", PROXY, "s", 1, 86400),
        _duration("proxy_cache_valid", PROXY, "s", 1, 86400),
        _integer("proxy_cache_min_uses", PROXY, 1, 1),
        _switch("proxy_cache_lock", PROXY, True),
        _integer("proxy_buffers_number", PROXY, 2, 8),
        _bytes("proxy_buffers_size", PROXY, 1 << 10, 8 << 10, takes="memory for each buffer of each fetch"),
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


def _gauge(name: str) -> CounterSpec:
    return CounterSpec(name, f"nginx.{name}", cumulative=False)


def _count(name: str) -> CounterSpec:
    return CounterSpec(name, f"nginx.{name}", cumulative=True)


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
