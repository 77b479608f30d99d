"""The addresses of the live page. Everything is read; nothing can be changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.live import files
from loadframe.live.follower import Follower
from loadframe.live.guard import HAS_KEY, Guard, Secrets
from loadframe.live.heading import Reads
from loadframe.live.hub import Hub, TooManySubscribers
from loadframe.live.metrics import Metrics
from loadframe.live.places import Places
from loadframe.live.watch_view import WATCH
from loadframe.reporting.html import own_scripts
from loadframe.reporting.markup import hashes
from loadframe.reporting.openmetrics import CONTENT_TYPE

ASSETS = {
    "/": ("live.html", "text/html"),
    "/live.js": ("live.js", "text/javascript"),
    "/draw.js": ("draw.js", "text/javascript"),
    "/watch.js": ("watch.js", "text/javascript"),
    "/live.css": ("live.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""A report may come from a stranger: it is shown as of no origin, it runs only the scripts that Loadframe itself puts
into reports, and it can ask nothing of anyone. Its links lead to the files of its own run (files.py)."""


def application(places: Places, hub: Hub, known: Secrets, hosts: Callable[[], frozenset[str]], reads: Reads) -> ASGIApp:
    """The page over these runs. hosts: the names under which it is reached, with the port."""
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
        found = await follower.whole(run_id)
        if found["schema"] == WATCH:  # it has no report
            return _json(found)
        return _json({**found, "report": f"/report/{known.ticket(run_id)}/{run_id}/"})

    def has_ticket(request: Request, run_id: str) -> bool:
        found = known.is_ticket(request.path_params["ticket"], run_id)
        if found:
            request.scope["state"][HAS_KEY] = True
        return found

    async def report(request: Request) -> Response:
        run_id = _id(request)
        if not has_ticket(request, run_id):
            return _without_ticket()
        page = await asyncio.to_thread(lambda: places.find(run_id).report())
        policy = REPORT_POLICY.format(scripts=hashes(own_scripts()))
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def file(request: Request) -> Response:
        run_id = _id(request)
        if not has_ticket(request, run_id):
            return _without_ticket()
        return await asyncio.to_thread(files.answer, places, run_id, request.path_params["file"])

    async def metrics(_request: Request) -> Response:
        async with measuring:
            text = await asyncio.to_thread(measured.text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def events(request: Request) -> Response:
        try:
            stream = hub.subscribe(request.headers.get("last-event-id", ""))
        except TooManySubscribers:
            return Response("There are too many viewers.\n", 503, {"Retry-After": "10"}, "text/plain")
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    routes = [
        *(Route(path, _asset(*named)) for path, named in ASSETS.items()),
        Route("/api/runs", runs),
        Route("/api/runs/{root}/{name}", run),
        Route("/api/events", events),
        Route("/metrics", metrics),
        Route("/report/{ticket}/{root}/{name}/", report),
        Route("/report/{ticket}/{root}/{name}/{file:path}", file),
    ]
    app = Starlette(routes=routes, lifespan=following, exception_handlers={RunError: _not_found})
    return Guard(app, known, hosts)


def _id(request: Request) -> str:
    return f"{request.path_params['root']}/{request.path_params['name']}"


def _without_ticket() -> Response:
    return Response("Open the report from the live page.\n", 401, media_type="text/plain")


def _json(found: dict[str, object]) -> Response:
    return Response(write_json(found), media_type="application/json")


def _not_found(_request: Request, error: Exception) -> Response:
    return JSONResponse({"schema": "loadframe.error/1", "kind": "RunError", "message": str(error)}, 404)


def _asset(name: str, media_type: str) -> Callable[[Request], Response]:
    text = resources.files("loadframe.live").joinpath(name).read_text(encoding="utf-8")

    def answer(_request: Request) -> Response:
        return Response(text, media_type=media_type)

    return answer
