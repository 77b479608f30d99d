"""Metrics whose names hold a name of the study's or of a peer are known, shown and told apart from others."""

from __future__ import annotations

import pytest

from loadframe.metrics import is_known, metric, parts_of
from loadframe.units import show_metric


def test_a_peer_is_in_the_name_and_in_the_words() -> None:
    name = "target.peer.127.0.0.1:5432.busy"
    assert is_known(name)
    assert metric(name).what == "connections of the target to 127.0.0.1:5432 on which an answer was awaited, average"
    assert show_metric(name, 4.0) == "4"
    assert parts_of(name)["peer"] == "127.0.0.1:5432"
    assert parts_of("target.peer.unix:/run/a.b.sock.connections_most")["peer"] == "unix:/run/a.b.sock"
    assert metric("database.peer.others.retransmits").unit == "1/s"


def test_a_component_of_any_name_has_what_the_target_has() -> None:
    assert metric("database.cpu.cores").what == metric("target.cpu.cores").what.replace("the target", "database")
    assert metric("cache.waits.futex").unit == "count"


@pytest.mark.parametrize(
    "name", ["target.peer.a.b", "target.peer.busy", "database.anything", "Database.cpu.cores", "x y.cpu.cores", "a"]
)
def test_other_names_are_of_no_family(name: str) -> None:
    assert not is_known(name)
    assert metric(name).what == name
