"""Which thread of a data node does what."""

from __future__ import annotations

import os
import threading

from loadframe_ndb.nodes import NodeThread, grouped, logged_threads, read_threads
from loadframe_ndb.records import NdbThreads

LOG = """
2026-11-27 01:00:00 [ndbd] INFO     -- thr: 0 tid: 101 (main) QMGR(0) NDBCNTR(0) realtime=0, spintime=0
2026-11-27 01:00:00 [ndbd] INFO     -- thr: 1 tid: 102 (ldm) cpubind: 1 OK DBTC(1) DBLQH(1) realtime=0
2026-11-27 01:00:00 [ndbd] INFO     -- thr: 2 tid: 103 (ldm) cpuset: [ 0,1 ] OK DBLQH(2) realtime=0
2026-11-27 01:00:00 [ndbd] INFO     -- thr: 3 tid: 104 (recv) TRPMAN(1) realtime=0
2026-11-27 01:00:00 [ndbd] INFO     -- a thr: of others
"""
ALL = frozenset({0, 1})


def test_the_log_tells_what_each_thread_does() -> None:
    assert logged_threads(LOG.splitlines()) == {101: "main", 102: "ldm", 103: "ldm", 104: "recv"}


def test_threads_that_the_process_has_are_read_and_others_are_not() -> None:
    """A log also has the threads of earlier starts."""
    own = threading.get_native_id()
    read = read_threads(os.getpid(), {own: "ldm", 1: "main"})
    assert read == (NodeThread("ldm", frozenset(os.sched_getaffinity(0))),)


def test_they_are_grouped_as_they_are_configured() -> None:
    threads = (
        NodeThread("recv", ALL),
        NodeThread("ldm", frozenset({1})),
        NodeThread("ldm", frozenset({1})),
        NodeThread("main", ALL),
    )
    assert grouped(threads, ALL) == (
        NdbThreads("main", 1),
        NdbThreads("ldm", 2, frozenset({1}), shared=True),
        NdbThreads("recv", 1),
    )
