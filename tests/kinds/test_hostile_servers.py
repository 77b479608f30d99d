"""A server may answer as it likes: it is read so far and no further, and told in words that can be shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.connections import mariadb_connection
from loadframe.errors import TargetError, WorkloadError
from loadframe.experiments.limits_now import limits
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.kinds.mysql import attached as mariadb_control
from loadframe.kinds.postgres import session as postgres_session
from loadframe.kinds.url import kind as url
from loadframe.model import TargetState
from loadframe.workloads import asking, http_driver, registry
from peers import HTTP, MARIADB, POSTGRES, SECRET_FILE, peer

MIB = 1 << 20
UNCHECKED = {"longer than said", "length below nothing", "two lengths", "compressed bomb", "becomes endless"}
"""What is a page to whoever checks its status alone; nothing is unpacked."""


@pytest.mark.server
@pytest.mark.parametrize("way", HTTP)
def test_a_web_server(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (url, "TIMEOUT_S", 0.3),
        (asking, "TIMEOUT_S", 0.3),
        (asking, "WHOLE_S", 0.6),
        (asking, "LARGEST_OBJECT", 8 * MIB),
    ):
        monkeypatch.setattr(module, name, value)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://203.0.113.1:9")
    with peer("http", way) as hostile:
        target, workload = url.UrlTarget(), registry.make("http", {"checked": "status"}, Allowance(US))
        try:
            target.start(TargetState({"url": f"http://127.0.0.1:{hostile.port}"}))
            workload.install(target.endpoint())
        except TargetError as error:
            assert all(line.isprintable() for line in str(error).split("\n"))
        else:
            assert way in UNCHECKED
    assert hostile.sent < 128 * MIB, "what was read, and what sockets hold"


@pytest.mark.server
def test_a_page_that_becomes_endless_under_load_ends_the_driver_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(http_driver, "OWN_BYTES", 64 * MIB)
    with peer("http", "becomes endless") as hostile:
        target, workload = url.UrlTarget(), registry.make("http", {"checked": "status"}, Allowance(US))
        target.start(TargetState({"url": f"http://127.0.0.1:{hostile.port}"}))
        workload.install(target.endpoint())
        driver = workload.start(target.endpoint(), 1, tmp_path, 20.0)
        try:
            driver.wait(30)
            with pytest.raises(WorkloadError, match="failed"):
                driver.requests()
        finally:
            driver.kill()
    assert hostile.sent < 200 * MIB


HARMLESS = {
    "mariadb": {"odd text of status"},
    "postgres": set[str](),
}
"""Ways in which a server answers all that is asked, if oddly."""
SECRET = "a-password-to-be-kept"


@pytest.mark.parametrize(
    ("kind", "way"), [("mariadb", way) for way in MARIADB] + [("postgres", way) for way in POSTGRES]
)
def test_a_database(kind: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (mariadb_connection, "CONNECT_S", 0.5),
        (mariadb_control.Control, "patience_s", 0.5),
        (mariadb_control, "ANSWER_BYTES", MIB),
        (postgres_session, "ANSWER_S", 0.5),
        (postgres_session, "ANSWER_BYTES", MIB),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setitem(postgres_session.OURS, "connect_timeout", 2)  # the shortest that there is
    monkeypatch.setenv("MYSQL_PWD", SECRET)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with peer(kind, way) as hostile:
        try:
            found = limits(server=f"{kind}:127.0.0.1:{hostile.port}", user="me", over_s=0.01)
        except TargetError as error:
            assert all(line.isprintable() for line in str(error).split("\n"))
        else:
            assert way in HARMLESS[kind]
            assert found.subject.isprintable()
    assert hostile.sent < 64 * MIB, "a few MiB of each connection, however long it lasts"
    assert SECRET.encode() not in hostile.sent_by_clients, "the password stays here"
    assert Path(SECRET_FILE).read_bytes().strip() not in hostile.sent_by_clients, "files stay here"
