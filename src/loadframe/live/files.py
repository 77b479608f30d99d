"""The files of a run folder that its report links to, and no others: from a stranger's folder, too, they are data."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping

from starlette.responses import StreamingResponse

from loadframe.errors import RunError
from loadframe.live.places import Places

TEXT, JSON, PARQUET = "text/plain", "application/json", "application/vnd.apache.parquet"
FILES: Mapping[str, str] = {
    "steps.jsonl": TEXT,
    "trials.jsonl": TEXT,
    "fleet-trials.jsonl": TEXT,
    "profiles/steps.jsonl": TEXT,
    "verdicts.json": JSON,
    "findings.json": JSON,
    "forecast.json": JSON,
    "ladder.json": JSON,
    "metrics.parquet": PARQUET,
    "limits.parquet": PARQUET,
}
"""Every name in a link of reporting's documents and of reporting.sources. JSON lines are text: so a browser shows
them."""
POLICY = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
PIECE_BYTES = 1 << 18


def answer(places: Places, run: str, name: str) -> StreamingResponse:
    """One of these files, as it is now; what a browser cannot show is to be saved. RunError for any other."""
    if name not in FILES:
        raise RunError(f"{name[:200]!a} is not a file that a report links to", remedy="Look into the run folder.")
    places.find(run)
    try:
        descriptor = places.folder(run).descriptor(name)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{name} of this run cannot be read: {why}", remedy="Look into the run folder.") from error
    size = os.fstat(descriptor).st_size
    headers = {"Content-Security-Policy": POLICY, "Content-Length": f"{size}"}
    if FILES[name] == PARQUET:
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return StreamingResponse(_pieces(descriptor, size), media_type=FILES[name], headers=headers)


async def _pieces(descriptor: int, size: int) -> AsyncIterator[bytes]:
    try:
        sent = 0
        while sent < size:
            piece = await asyncio.to_thread(os.pread, descriptor, min(PIECE_BYTES, size - sent), sent)
            if not piece:
                return
            sent += len(piece)
            yield piece
    finally:
        os.close(descriptor)
