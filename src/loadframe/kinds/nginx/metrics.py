"""What nginx counts, as a web server and as a cache."""

from pathlib import Path

from loadframe.knowledge.metric import Derived, requests, share

ROWS = Path(__file__).with_name("metrics.txt").read_text(encoding="utf-8", errors="strict")
"""name | unit | what."""

DERIVED = (
    Derived("nginx.files_wanted", ("nginx.worker_connections",), lambda each: 2 * each),
    Derived("nginx.connection_share", ("nginx.accepts", "nginx.requests"), share),
)

AGREEMENTS = (requests("nginx.requests", also=("nginx.accepts", "nginx.handled")),)
