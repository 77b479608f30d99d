"""Metrics of nginx that follow from its counters, as a web server and as a cache."""

from loadframe.knowledge.metric import Derived, requests, share

DERIVED = (
    Derived("nginx.files_wanted", ("nginx.worker_connections",), lambda connections: 2 * connections),
    Derived("nginx.connection_share", ("nginx.accepts", "nginx.requests"), share),
)

AGREEMENTS = (requests("nginx.requests", also=("nginx.accepts", "nginx.handled")),)
