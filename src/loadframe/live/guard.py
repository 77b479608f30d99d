"""Who is answered: whoever has the token, from a page of this server itself. It is no cookie, which a browser would
send to every port of this machine: it comes in the fragment of the address, which is never sent, and the page's script
sends it as a bearer token (RFC 6750). The checks of Host (against DNS rebinding), Origin and Sec-Fetch-Site stand in
front of it all the same."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = frozenset({"/", "/live.js", "/draw.js", "/watch.js", "/live.css", "/icon.svg"})
"""What has nothing to hide: the page without its data."""
HAS_KEY = "has_key"
"""In the state of a request that came with the token, or with a ticket (ASGI, scope["state"])."""
REPORTS = "/report/"
"""Below it, a name has a ticket in its path: a frame can send no token."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise."""


class Secrets:
    """What one server knows and its user."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._key = secrets.token_bytes(32)

    def has_token(self, authorization: str | None) -> bool:
        """Whether a header carries the token. In constant time."""
        scheme, _, given = (authorization or "").partition(" ")
        return hmac.compare_digest(given.strip().encode(), self.token.encode()) and scheme.lower() == "bearer"

    def ticket(self, run: str) -> str:
        """The right to read the report of one run, for as long as this server runs."""
        return hmac.new(self._key, run.encode(), "sha256").hexdigest()

    def is_ticket(self, given: str, run: str) -> bool:
        """Whether a ticket is that of a run. In constant time."""
        return hmac.compare_digest(given.encode(), self.ticket(run).encode())


class Guard:
    """In front of the application. hosts: the names under which this server is reached, with its port."""

    def __init__(self, app: ASGIApp, known: Secrets, hosts: Callable[[], frozenset[str]]) -> None:
        self._app = app
        self._known = known
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers, hosts = Headers(scope=scope), self._hosts()
        if scope["method"] not in ("GET", "HEAD"):
            return _says(405, "This server only answers GET: it changes nothing.", {"Allow": "GET, HEAD"})
        if len(given := headers.getlist("host")) != 1 or given[0].lower() not in hosts:
            return _says(403, "This server answers only under the address that `loadframe serve` printed.")
        if any(origin.lower() not in {f"http://{host}" for host in hosts} for origin in headers.getlist("origin")):
            return _says(403, "Pages of other origins are not answered.")
        if scope["path"] in OPEN:
            return None
        in_reports = scope["path"].startswith(REPORTS)
        followed = in_reports and headers.get("sec-fetch-mode") == "navigate"  # a report is of no origin, its links too
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not followed:
            return _says(403, "Pages of other origins are not answered.")
        if self._known.has_token(headers.get("authorization")):
            scope["state"][HAS_KEY] = True
            return None
        if in_reports:
            return None
        return _says(401, "Open the address that `loadframe serve` printed.", {"WWW-Authenticate": "Bearer"})


def _says(status: int, words: str, headers: Mapping[str, str] | None = None) -> PlainTextResponse:
    return PlainTextResponse(f"{words}\n", status, headers)


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return answer
