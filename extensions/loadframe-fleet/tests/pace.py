"""A service of a known pace: `pace.py ADDRESS PORT SECONDS [BYTES]` answers each request after so long, as many at a
time as ask. What it gives depends on how many connections ask, not on how busy the machine is."""

from __future__ import annotations

import asyncio
import sys


async def _serve(address: str, port: int, seconds: float, size: int) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(seconds)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(speak, address, port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    size = int(sys.argv[4]) if len(sys.argv) > 4 else 100
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), size))
