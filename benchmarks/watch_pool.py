"""A small render farm that is real: python benchmarks/watch_pool.py POOL SECONDS. Prints its port.

GET /submit takes a place of the pool for about SECONDS (which a log-normal time is on the average), and waits for one
where all are in use. GET /metrics has the jobs (connections that have submitted), the places in use and their number.
No CPU limits it: only the pool. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import random
import sys

SPREAD = 0.3
"""Of the logarithm of the time for which a place is taken."""


class Farm:
    def __init__(self, size: int, seconds: float) -> None:
        self._size, self._seconds, self._draw = size, seconds, random.Random(5)
        self._pool = asyncio.Semaphore(size)
        self.jobs = self.in_use = self.submitted = 0

    async def submit(self) -> bytes:
        async with self._pool:
            self.in_use += 1
            await asyncio.sleep(self._seconds * self._draw.lognormvariate(-SPREAD * SPREAD / 2, SPREAD))
            self.in_use -= 1
        self.submitted += 1
        return b"done\n"

    def metrics(self) -> bytes:
        rows = {"active_jobs": self.jobs, "pool_in_use": self.in_use, "pool_size": self._size}
        text = "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in rows.items())
        return f"{text}# TYPE submissions_total counter\nsubmissions_total {self.submitted}\n".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request; with `Job:` among its headers it is a job until it closes."""
        is_job = False
        try:
            while line := await reader.readline():
                while (header := (await reader.readline()).strip()) != b"":
                    if header.lower().startswith(b"job:") and not is_job:
                        is_job = True
                        self.jobs += 1
                path = line.split()[1]
                body = await self.submit() if path == b"/submit" else self.metrics() if path == b"/metrics" else b"?\n"
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, IndexError):
            return
        finally:
            self.jobs -= is_job
            writer.close()


async def main() -> None:
    """Serve until standard input ends."""
    farm = Farm(int(sys.argv[1]), float(sys.argv[2]))
    server = await asyncio.start_server(farm.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
