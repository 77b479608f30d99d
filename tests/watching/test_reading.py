"""What a watch reads of a service while its processes come and go, and of one that is on another machine."""

from __future__ import annotations

from loadframe.experiments.watch_process import RealReader
from loadframe.model.watch import WatchPlan


def test_what_has_no_process_here_is_not_absent() -> None:
    """A web address: whether it answers is told by the unit of work."""
    reader = RealReader(WatchPlan("a web address", "", load="target.connections"))
    assert reader.read(1.0)[1] and reader.read(11.0)[1]


def test_a_database_elsewhere_is_absent_while_it_does_not_answer() -> None:
    address = {"kind": "mariadb", "address": "127.0.0.1:1", "user": "", "option_file": ""}
    reader = RealReader(WatchPlan("a database", "", server=address))
    assert not reader.read(1.0)[1]
