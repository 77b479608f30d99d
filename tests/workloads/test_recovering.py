"""What every load of a server known by its address does where that takes no connection between two steps."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from answering import Sent, said, serving
from loadframe.errors import NotRecovered, TargetError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint
from loadframe.workloads import asking, registry
from loadframe.workloads.base import Workload

pytestmark = pytest.mark.server
OF_DRIVERS = pytest.mark.extension("loadframe_drivers")

LOG = '127.0.0.1 - - [10/Oct/2000:13:55:{}6 +0000] "GET /items HTTP/1.1" 200 11\n'


def made(kind: str, folder: Path) -> Workload:
    """A workload of each sort that asks before a step whether the server is there."""
    log = folder / "access.log"
    log.write_text("".join(LOG.format(tens) for tens in range(6)), encoding="utf-8")
    if kind == "access-log":
        return registry.make(kind, {"file": str(log)}, Allowance(US), axis="speed", declared=Declared())
    return registry.make(kind, {"loop": "closed"}, Allowance(US), axis="users", declared=Declared(command=("true",)))


def page(_: Sent) -> bytes:
    return said(b"seven items")


@pytest.mark.parametrize("kind", [pytest.param("access-log", marks=OF_DRIVERS), "command"])
def test_one_that_takes_no_connection_is_waited_for_and_told(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = made(kind, tmp_path)
    with serving(page) as service:
        endpoint = service.endpoint()
        workload.install(endpoint)
        workload.set_level(endpoint, 1)
    with ExitStack() as stack:
        again = serving(page, port=int(endpoint.address.rpartition(":")[2]))
        later = threading.Timer(0.3, lambda: stack.enter_context(again))
        later.start()
        workload.set_level(endpoint, 1)
        later.join()
    monkeypatch.setattr(asking, "RECOVERS_WITHIN_S", 0.4)
    with pytest.raises(
        NotRecovered, match=r"does not answer( /items)? \(Connection refused\), and did not for "
    ) as caught:
        workload.set_level(endpoint, 1)
    assert "whether it has ended" in caught.value.remedy and caught.value.why == "Connection refused"
    with pytest.raises(TargetError) as first:
        made(kind, tmp_path).install(endpoint)
    assert not isinstance(first.value, NotRecovered), "it has never answered"


@OF_DRIVERS
def test_what_is_wrong_otherwise_is_not_waited_for(tmp_path: Path) -> None:
    """A server that accepts, and says nothing that is HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = Endpoint("url", f"127.0.0.1:{listening.getsockname()[1]}", {})

        def say_what_is_no_http() -> None:
            with listening.accept()[0] as accepted:
                accepted.sendall(b"SSH-2.0-none\r\n")

        answer = threading.Thread(target=say_what_is_no_http, daemon=True)
        answer.start()
        with pytest.raises(TargetError) as caught:
            made("access-log", tmp_path).set_level(endpoint, 1)
        answer.join()
    assert not isinstance(caught.value, NotRecovered)
