"""Sends mails, so many at a time as it has senders, all in one thread (asyncio): mailer.py --port PORT --config FILE.

The file is YAML of plain lines NAME: VALUE: senders; signature and archive_days, which change nothing that a load
shows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from pathlib import Path

from common import around

RELAY_S = 0.012


def read(path: Path) -> dict[str, str]:
    """The settings of a file."""
    lines = (line.split("#")[0].split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    return {name.strip(): value.strip().strip("\"'") for name, value in lines}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    knobs = {"senders": "5", "signature": "short", "archive_days": "30", **read(arguments.config)}
    senders = asyncio.Semaphore(int(knobs["senders"]))

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = b"sent\n"
                if head.startswith(b"GET /config "):
                    body = json.dumps(knobs).encode()
                else:
                    async with senders:
                        await asyncio.sleep(around(RELAY_S))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()

    server = await asyncio.start_server(client, "127.0.0.1", arguments.port, backlog=512)
    print(f"listening on {arguments.port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
