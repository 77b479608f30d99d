"""nginx as data: its settings, where each stands in the configuration, and its counters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in

Context = Literal["main", "events", "http", "listen", "cache", "proxy"]

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: workers that a reload starts take the new value."""
CACHE_CATALOGUE = catalogue_in(_FILE, Path(__file__).with_name("cache_settings.toml"))
"""A cache in front of an origin. nginx's own defaults of proxy_cache_max_size, _inactive, _valid and _lock are none, 10
minutes, none and off; with ours nothing expires or is fetched twice in the middle of a study."""


@dataclass(frozen=True, slots=True)
class Directive:
    """A line of the configuration: its form has settings in braces. off: the setting whose default leaves it out."""

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

STATUS = tuple(counters_in(_METRICS, "status").values())
"""stub_status (ngx_http_stub_status_module). Our own reading is counted too."""
CEILINGS = tuple(counters_in(_METRICS, "ceiling").values())
"""The number of workers, the connections of each, and how many clients there may be before idle connections are closed;
the descriptors that a worker may have, and those of the worker that has most."""
WORK = tuple(counters_in(_METRICS, "work").values())
"""Seconds of CPU, and in uninterruptible sleep (sampled at each look), averaged over the workers."""
LOGGED = tuple(counters_in(_METRICS, "log").values())
"""Counted in the error log, as nginx keeps no counter of them."""
