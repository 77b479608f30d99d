"""Servers that answer wrongly: every way of peers.py, as it is and with some of what it sends damaged on the way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import peers
from loadframe.experiments.limits_now import limits
from loadframe.host.processes import Allowance
from loadframe.kinds.exposed import Exposure, sources_of
from loadframe.kinds.url.kind import UrlTarget
from loadframe.model import TargetState
from loadframe.study.exposed_tables import MetricsTable

SLOW = ("silent", "slow", "endless", "huge", "forever", "for ever", "bomb")
"""Words in the names of ways that take the time of a timeout, or many bytes: they are tried less often."""


def chosen(rng: random.Random) -> tuple[str, str, float]:
    """Kind, way, and the share of what is sent that is damaged."""
    while True:
        kind = rng.choice(sorted(ASKED))
        way = rng.choice(sorted(peers.KINDS[kind]))
        if not any(word in way for word in SLOW) or rng.random() < 0.1:
            return kind, way, rng.choice((0.0, 0.05, 0.3))


def ask(kind: str, way: str, part: float, rng: random.Random) -> None:
    """Ask a peer as a command would. UserError is the only thing that may come of it."""
    with peers.peer(kind, way) as peer, _damaging(rng, part):
        ASKED[kind](peer.port)


def _limits(kind: str) -> Callable[[int], None]:
    def read(port: int) -> None:
        limits(server=f"{kind}:127.0.0.1:{port}", user="us")

    return read


def _url(port: int) -> None:
    target = UrlTarget()
    target.create()
    target.start(TargetState({"url": f"http://127.0.0.1:{port}", "paths": "/ /about"}))
    target.healthy()


def _counters(port: int) -> None:
    table = MetricsTable.model_validate({"prometheus": "http://127.0.0.1:{port}/metrics"})
    exposure = Exposure(sources_of([table], (), lambda: port, Allowance))
    exposure.now()
    exposure.missing()


ASKED: Mapping[str, Callable[[int], None]] = {
    "mariadb": _limits("mariadb"),
    "postgres": _limits("postgres"),
    "http": _url,
    "prometheus": _counters,
}


@contextmanager
def _damaging(rng: random.Random, part: float) -> Iterator[None]:
    plain = peers.Line.send

    def send(line: peers.Line, data: bytes) -> None:
        if data and rng.random() < part:
            at = rng.randrange(len(data))
            data = data[:at] + rng.choice((b"", b"\xff", b"\0" * 4, b"\x7f", rng.randbytes(3))) + data[at + 1 :]
        plain(line, data)

    peers.Line.send = send  # type: ignore[method-assign]
    try:
        yield
    finally:
        peers.Line.send = plain  # type: ignore[method-assign]
