"""What a search may vary of nginx, a web server or a cache, and how far. The most promising come first."""

from __future__ import annotations

from loadframe.kinds.tunable import SWITCH, Tunable

TUNABLES = (
    Tunable("sendfile", values=SWITCH),
    Tunable("tcp_nopush", values=SWITCH),
    Tunable("multi_accept", values=SWITCH),
    Tunable("keepalive_requests", values=(100, 1000, 10_000, 100_000)),
    Tunable("aio", values=("off", "threads")),
)
