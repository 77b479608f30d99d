"""A FastAPI service that computes in its PostgreSQL, one statement an answer. Arguments: its port, a DSN of libpq."""

import sys
from threading import local

import psycopg
import uvicorn
from fastapi import FastAPI

PORT, DSN = int(sys.argv[1]), sys.argv[2]
STATEMENT = "SELECT sum(i * i % 7)::integer FROM generate_series(1, 20000) AS i"
app = FastAPI()
own = local()


@app.get("/")
def ask() -> int:
    if not hasattr(own, "connection"):
        own.connection = psycopg.connect(DSN, autocommit=True)
    ((value,),) = own.connection.execute(STATEMENT).fetchall()
    return int(value)


uvicorn.run(app, host="127.0.0.1", port=PORT, access_log=False, log_level="warning")
