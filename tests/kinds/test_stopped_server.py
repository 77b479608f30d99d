"""A server that is stopped is asked for so long and no longer, and ended all the same."""

from __future__ import annotations

import os
import signal

import pytest

from loadframe.connections.postgres_connection import patient
from loadframe.errors import TargetError
from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.kinds import registry
from loadframe.kinds.database import Control
from loadframe.model import TargetState
from loadframe.workloads import databases


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("kind", ["mariadb", pytest.param("mysql", marks=pytest.mark.mysql), "postgres"])
def test_it_is_told_that_the_server_was_stopped(kind: str, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    target = registry.kind_named(kind).make(lease, Allowance(US))
    target.create()
    try:
        target.start(TargetState({"max_connections": 40}))
        monkeypatch.setattr(Control, "patience_s", 1)
        target._control.close()  # type: ignore[attr-defined]  # the next connection has this limit
        target.counters()
        endpoint = target.endpoint()
        first = target.pids()[0]
        everybody = [first, *identity.children(first)]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        stopped = r"did not answer `S.*` within 1 s: .*(is|are) stopped by a signal"
        with pytest.raises(TargetError, match=stopped) as told:
            target.counters()
        assert "kill -CONT" in told.value.remedy
        monkeypatch.setattr(Control, "patience_s", 10_000)
        with pytest.raises(TargetError, match=r"(is|are) stopped by a signal"):  # at once: pytest would not wait
            target.counters()
        with pytest.raises(TargetError, match=r"does not answer: .*(is|are) stopped by a signal"):
            databases.await_drivers_gone(endpoint, "to tidy up")
    finally:
        target.destroy()
    assert not any(identity.alive(known) for pid in everybody if (known := identity.identify(pid)) is not None)


def test_a_connection_waits_for_silence_not_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    now = [0.0]
    ended: list[bool] = []
    kind = patient(10, lambda: now[0])
    connection = kind.__new__(kind)
    monkeypatch.setattr(
        type(connection),
        "pgconn",
        type("", (), {"finish": lambda self: ended.append(True), "status": 0})(),
        raising=False,
    )

    def answering():  # type: ignore[no-untyped-def]
        heard = []
        while len(heard) < 4:
            heard.append((yield "readable"))
        return heard

    waiting = connection._limited(answering())  # type: ignore[attr-defined]
    waiting.send(None)
    for ready, at_s in ((0, 9.0), (1, 9.5), (0, 19.0)):
        now[0] = at_s
        waiting.send(ready)
    with pytest.raises(StopIteration) as whole:
        waiting.send(1)
    assert whole.value.value == [0, 1, 0, 1] and not ended

    waiting = connection._limited(answering())  # type: ignore[attr-defined]
    waiting.send(None)
    now[0] += 10.5
    with pytest.raises(psycopg.OperationalError, match="no answer within 10 s"):
        waiting.send(0)
    assert ended == [True]
