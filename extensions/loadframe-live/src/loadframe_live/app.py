"""The addresses of the live page; nothing can be changed. Only holders of the token are answered, from a page of this
server itself. It is no cookie, which a browser would send to every port of this machine: it comes in the fragment of
the address, which is never sent, and the page's script sends it as a bearer token (RFC 6750). Host (against DNS
rebinding), Origin and Sec-Fetch-Site are checked before it."""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import resources

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.reporting.html import hashes, own_scripts
from loadframe.reporting.openmetrics import CONTENT_TYPE
from loadframe_live import shown
from loadframe_live.follower import Follower, Metrics
from loadframe_live.hub import Hub, TooManySubscribers
from loadframe_live.shown import Places
from loadframe_live.view import RUN, Reads

ASSETS = {
    "/": ("live.html", "text/html"),
    "/live.js": ("live.js", "text/javascript"),
    "/draw.js": ("draw.js", "text/javascript"),
    "/watch.js": ("watch.js", "text/javascript"),
    "/live.css": ("live.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HAS_KEY = "has_key"
"""Name in the state of a request with the token, or with a ticket (ASGI, scope["state"])."""
REPORTS = "/report/"
"""Addresses below it have a ticket in the path: a frame cannot send a token."""

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
"""Headers of every answer, by default."""


class Secrets:
    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._key = secrets.token_bytes(32)

    def has_token(self, authorization: str | None) -> bool:
        """In constant time."""
        scheme, _, given = (authorization or "").partition(" ")
        return hmac.compare_digest(given.strip().encode(), self.token.encode()) and scheme.lower() == "bearer"

    def ticket(self, run: str) -> str:
        """The right to read the report of one run while this server runs. Compare it in constant time."""
        return hmac.new(self._key, run.encode(), "sha256").hexdigest()


class Guard:
    """hosts: the names under which this server is reached, with its port."""

    def __init__(self, app: ASGIApp, known: Secrets, hosts: Callable[[], frozenset[str]]) -> None:
        self._app = app
        self._known = known
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        await (self._refused(scope) or self._app)(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers, hosts = Headers(scope=scope), self._hosts()
        if scope["method"] not in ("GET", "HEAD"):
            return _says(405, "This server only answers GET: it changes nothing.", {"Allow": "GET, HEAD"})
        if len(given := headers.getlist("host")) != 1 or given[0].lower() not in hosts:
            return _says(403, "This server answers only under the address that `loadframe serve` printed.")
        if any(origin.lower() not in {f"http://{host}" for host in hosts} for origin in headers.getlist("origin")):
            return _says(403, "Pages of other origins are not answered.")
        if scope["path"] in ASSETS:
            return None
        in_reports = scope["path"].startswith(REPORTS)
        followed = in_reports and headers.get("sec-fetch-mode") == "navigate"  # a report and its links have no origin
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


REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""A report may be foreign: it is shown without an origin, it runs only the scripts that Loadframe itself puts into
reports, and it can request nothing. Its links lead to the files of its own run (shown.py)."""


def application(places: Places, hub: Hub, known: Secrets, hosts: Callable[[], frozenset[str]], reads: Reads) -> ASGIApp:
    follower, measured, measuring = Follower(places, hub, reads), Metrics(places, reads.case), asyncio.Lock()

    @asynccontextmanager
    async def following(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(follower.follow())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def runs(_request: Request) -> Response:
        return _json(await follower.rows())

    async def run(request: Request) -> Response:
        run_id = _id(request)
        whole = await follower.whole(run_id)
        if whole["schema"] != RUN:  # it has no report
            return _json(whole)
        return _json({**whole, "report": f"/report/{known.ticket(run_id)}/{run_id}/"})

    async def report(request: Request) -> Response:
        run_id, name = _id(request), request.path_params["file"]
        if not hmac.compare_digest(request.path_params["ticket"].encode(), known.ticket(run_id).encode()):
            return _says(401, "Open the report from the live page.")
        request.scope["state"][HAS_KEY] = True
        if name:
            return await asyncio.to_thread(shown.answer, places, run_id, name)
        page = await asyncio.to_thread(lambda: places.find(run_id).report())
        policy = REPORT_POLICY.format(scripts=hashes(own_scripts()))
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def metrics(_request: Request) -> Response:
        async with measuring:
            text = await asyncio.to_thread(measured.text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def events(request: Request) -> Response:
        try:
            stream = hub.subscribe(request.headers.get("last-event-id", ""))
        except TooManySubscribers:
            return _says(503, "There are too many viewers.", {"Retry-After": "10"})
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    routes = [
        *(Route(path, _asset(*named)) for path, named in ASSETS.items()),
        Route("/api/runs", runs),
        Route("/api/runs/{root}/{name}", run),
        Route("/api/events", events),
        Route("/metrics", metrics),
        Route("/report/{ticket}/{root}/{name}/{file:path}", report),
    ]
    about = {"schema": "loadframe.error/1", "kind": "RunError"}
    handlers = {RunError: lambda _, error: JSONResponse({**about, "message": str(error)}, 404)}
    app = Starlette(routes=routes, lifespan=following, exception_handlers=handlers)
    return Guard(app, known, hosts)


def _id(request: Request) -> str:
    return f"{request.path_params['root']}/{request.path_params['name']}"


def _json(document: dict[str, object]) -> Response:
    return Response(write_json(document), media_type="application/json")


def _asset(name: str, media_type: str) -> Callable[[Request], Response]:
    text = resources.files("loadframe_live").joinpath(name).read_text(encoding="utf-8")

    def answer(_request: Request) -> Response:
        return Response(text, media_type=media_type)

    return answer
