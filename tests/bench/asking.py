"""A service that computes in its PostgreSQL, a statement for each answer. Arguments: its port, what libpq is told."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import local

import psycopg

PORT, DSN = int(sys.argv[1]), sys.argv[2]
STATEMENT = "SELECT sum(i * i % 7) FROM generate_series(1, 20000) AS i"
own = local()


class Asks(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 4096

    def do_GET(self) -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(DSN, autocommit=True)
        ((value,),) = own.connection.execute(STATEMENT).fetchall()
        text = b"%d\n" % value
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None: ...


ThreadingHTTPServer(("127.0.0.1", PORT), Asks).serve_forever()
