"""Looks up orders in PostgreSQL over a pool of connections: orders.py --port PORT --config FILE.

Environment: DATABASE_URL (libpq). The file is JSON: pool; statement_cache and fetch_size, which change nothing that a
load shows.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
from pathlib import Path

import psycopg

from common import Answer, around, serve

QUERY_S = 0.02
ORDERS = 2000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    knobs = {"pool": 4, "statement_cache": 32, "fetch_size": 100, **json.loads(arguments.config.read_text())}
    dsn = os.environ["DATABASE_URL"]
    with psycopg.connect(dsn, autocommit=True) as first:
        first.execute("CREATE TABLE IF NOT EXISTS orders (id integer PRIMARY KEY, customer text, total numeric)")
        first.execute(
            "INSERT INTO orders SELECT n, 'customer ' || n, n * 1.5 FROM generate_series(1, %s) n "
            "ON CONFLICT DO NOTHING",
            (ORDERS,),
        )
    pool: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()
    for _ in range(int(knobs["pool"])):
        pool.put(psycopg.connect(dsn, autocommit=True, application_name="orders"))

    def work(path: str) -> Answer:
        connection = pool.get()
        try:
            row = connection.execute(
                "SELECT customer, total FROM orders, pg_sleep(%s) WHERE id = 1 + (%s * 1000000)::integer %% %s",
                (around(QUERY_S), around(1.0), ORDERS),
            ).fetchone()
        finally:
            pool.put(connection)
        return 200, json.dumps(row, default=str).encode()

    serve(arguments.port, work, knobs)


if __name__ == "__main__":
    main()
