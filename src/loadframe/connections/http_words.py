"""What may be in a request that a study, a log or a recorded session names: no second request in it."""

import re

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""Names of headers and cookies (RFC 9110, 5.6.2)."""
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""A header's value: no control character but tab (RFC 9110, 5.5)."""
PATH = re.compile(r"/[!-~]*")
LONGEST_PATH, LONGEST_VALUE = 8 << 10, 16 << 10
METHODS = ("DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Requests that change no data (RFC 9110, 9.2.1)."""
REPEATABLE = SAFE | {"DELETE", "PUT"}
"""Requests that may be sent twice (idempotent: RFC 9110, 9.2.2)."""
NOT_SENT = {
    "HEAD": "wrk, which sends the load, waits for the body that the answer to HEAD announces",
    "CONNECT": "it asks for a tunnel",
    "TRACE": "it asks for its own text",
}
_HOP = "it is between one client and one server (RFC 9110, 7.6.1), and the driver's own"
REFUSED = {
    "host": "it follows from the target's address",
    "content-length": "it follows from the body",
    "transfer-encoding": "bodies are sent whole, with their length",
    "connection": "workload.options.keep_alive says whether connections stay open",
    "expect": "the driver does not wait for 100 Continue",
    "keep-alive": _HOP,
    "proxy-connection": _HOP,
    "te": _HOP,
    "trailer": _HOP,
    "upgrade": _HOP,
}
SECRET = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token"})


def wrong_header(name: str, value: str) -> str | None:
    """Why it cannot be sent as it is; None where it can."""
    if not TOKEN.fullmatch(name):
        return "its name is no word that HTTP allows (RFC 9110, 5.6.2)"
    if name.lower() in REFUSED:
        return REFUSED[name.lower()]
    if not VALUE.fullmatch(value) or value != value.strip():
        return "its value has a line break, another control character, a letter beyond Latin-1, or blanks at its ends"
    if len(value) > LONGEST_VALUE:
        return f"its value has more than {LONGEST_VALUE:,} characters"
    return None


def wrong_path(path: str) -> str | None:
    """Why it cannot be requested as it is; None where it can."""
    if not PATH.fullmatch(path):
        return "it must begin with / and have printable ASCII without blanks (others as %20)"
    if "#" in path:
        return "what follows # is not sent to a server"
    return f"it has more than {LONGEST_PATH:,} characters" if len(path) > LONGEST_PATH else None
