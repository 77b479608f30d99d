"""A WSGI application that waits for its mail server, for gunicorn: gunicorn wsgi:application.

Environment: TEMPLATE_CACHE and LOCALE, which change nothing that a load shows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping

from common import wait

MAIL_S = 0.03
KNOBS = {
    "template_cache": int(os.environ.get("TEMPLATE_CACHE", "100")),
    "locale": os.environ.get("LOCALE", "en"),
}


def workers() -> int:
    """As gunicorn was started."""
    return int(sys.argv[sys.argv.index("--workers") + 1])


def application(environ: Mapping[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
    """A mail for each request."""
    if environ["PATH_INFO"] == "/config":
        body = json.dumps({"workers": workers(), **KNOBS}).encode()
    else:
        wait(MAIL_S)
        body = b"sent\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
