"""What follows from the counters of a MySQL Cluster."""

from __future__ import annotations

import pytest

from loadframe.ledger.reading import derive


@pytest.mark.parametrize(
    ("wait", "pool", "receive_from", "shared_by", "slots"),
    [
        (1.003, 1.0, 8.0, 0.003, 8.0),
        (17.0, 1.0, 8.0, 16.0, 8.0),
        (17.0, 8.0, 8.0, 2.0, 64.0),
        (0.0, 1.0, 0.0, 0.0, 1.0),
    ],
)
def test_the_sql_nodes_own_thread_is_no_client_and_each_connection_has_its_share(
    wait: float, pool: float, receive_from: float, shared_by: float, slots: float
) -> None:
    told = {"ndb.sql.nodes": 1.0, "ndb.sql.wait": wait, "ndb.sql.pool": pool, "ndb.sql.receive_from": receive_from}
    found, _ = derive(told, {})
    assert found["ndb.sql.shared_by"] == pytest.approx(shared_by)
    assert found["ndb.sql.waiting"] == pytest.approx(max(0.0, wait - 1.0))
    assert found["ndb.sql.receive_slots"] == slots


def test_without_the_waits_nothing_follows_about_connections() -> None:
    found, reasons = derive({"ndb.sql.pool": 1.0}, {"ndb.sql.wait": "the SQL node does not tell it"})
    assert "ndb.sql.shared_by" not in found
    assert reasons["ndb.sql.shared_by"] == "the SQL node does not tell it"
