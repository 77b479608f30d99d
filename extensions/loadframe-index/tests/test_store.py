"""Whatever the database is, applying again or in another order ends with the same rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadframe_index.entries import NO_PARENT, Entry, entry_of, id_of, split
from loadframe_index.store import COLUMNS, Batch, Row, Store, StoreError, connect, rows_of

names = st.binary(min_size=1, max_size=255).filter(lambda name: b"/" not in name and b"\0" not in name)
paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)
big = st.integers(0, 2**63 - 1)
PATH, SEEN = COLUMNS.index("path"), COLUMNS.index("seen_ns")


def an_entry(path: bytes, **others: object) -> Entry:
    parent, name = split(path)
    return Entry(path, parent, name, 1, 2, "f", 3, 8, 1, 0, 0, 0o644, 4, 5, 6)._replace(**others)


def rows(entries: Sequence[Entry], seen_ns: int = 1) -> list[Row]:
    return rows_of(entries, [id_of(entry.path) for entry in entries], seen_ns)


def by_path(store: Store) -> dict[bytes, Row]:
    return {row[PATH]: row for row in store.rows()}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.dictionaries(paths, st.tuples(big, big, big), min_size=1, max_size=20))
def test_any_name_comes_back_as_it_was(store: Store, found: dict[bytes, tuple[int, int, int]]) -> None:
    store.create()
    entries = [an_entry(path, inode=a, size=b, mtime_ns=c) for path, (a, b, c) in found.items()]
    wanted = rows(entries)
    store.apply(Batch(rows=wanted))
    assert sorted(store.rows()) == wanted
    assert sorted(store.ids()) == sorted(id_of(path) for path in found)
    assert store.known([id_of(path) for path in found]) == {
        id_of(path): (a, 4, c, 6, wanted[0][-1]) for path, (a, b, c) in found.items()
    }


def test_a_path_over_4096_bytes_and_an_inode_of_64_bits_fit(store: Store) -> None:
    long = b"/".join([b"\xff" * 255] * 300)
    store.apply(Batch(rows=rows([an_entry(long, inode=2**64 - 1), an_entry(b"a'\\\"\n\x00"[:-1])])))
    assert set(by_path(store)) == {long, b"a'\\\"\n"}


def test_the_root_is_its_own_parent_nowhere(store: Store, tree: Path) -> None:
    store.apply(Batch(rows=rows([entry_of(b"", b"", os.lstat(tree))])))
    ((key, parent, *_),) = store.rows()
    assert (key, parent) == (id_of(b""), NO_PARENT)


def test_an_older_look_replaces_no_newer_one_and_removes_none(store: Store) -> None:
    new, old = rows([an_entry(b"a", size=2)], seen_ns=20), rows([an_entry(b"a", size=1)], seen_ns=10)
    for batch in (new, old, new, old):
        store.apply(Batch(rows=batch))
    assert by_path(store) == {b"a": new[0]}
    store.apply(Batch(removed=[b"a"], seen_ns=10))
    assert store.count() == 1
    store.apply(Batch(removed=[b"a"], seen_ns=20))
    assert store.count() == 0


def test_a_directory_goes_with_all_that_is_beneath_it(store: Store) -> None:
    kept = [an_entry(path) for path in (b"", b"d", b"da", b"d/kept", b"a/d/b")]
    gone = [an_entry(path) for path in (b"d/x", b"d/x/y", b"d/x/y/z")]
    store.apply(Batch(rows=rows(kept + gone)))
    store.apply(Batch(removed=[b"d/x", b"not there"], seen_ns=1))
    assert set(by_path(store)) == {entry.path for entry in kept}


def test_entries_that_no_scan_saw_again_are_forgotten(store: Store) -> None:
    store.apply(Batch(rows=rows([an_entry(b"a"), an_entry(b"b")], seen_ns=1)))
    store.apply(Batch(touched=[id_of(b"a"), id_of(b"c")], seen_ns=5))
    assert by_path(store)[b"a"][SEEN] == store.last_seen_ns() == 5
    assert store.forget_before(5) == 1
    assert set(by_path(store)) == {b"a"}


def test_what_is_acknowledged_is_in_the_same_transaction_and_never_goes_back(
    store: Store, another: Callable[[], Store]
) -> None:
    other = another()
    store.apply(Batch(rows=rows([an_entry(b"a")]), log="injected", number=7))
    assert (other.count(), other.acknowledged("injected"), other.acknowledged("inotify")) == (1, 7, 0)
    store.apply(Batch(log="injected", number=3))
    assert other.acknowledged("injected") == 7
    with pytest.raises((StoreError, TypeError)):
        store.apply(Batch(rows=[*rows([an_entry(b"b")]), (*rows([an_entry(b"c")])[0][:-1], None)], log="injected"))  # type: ignore[list-item]
    assert (other.count(), other.acknowledged("injected")) == (1, 7)


def test_connections_that_write_the_same_rows_at_once_all_end(another: Callable[[], Store]) -> None:
    stores = [another() for _ in range(4)]

    def write(store: Store) -> None:
        for turn in range(10):
            entries = [an_entry(b"%d" % number, size=turn) for number in range(200)]
            store.apply(Batch(rows=rows(entries, seen_ns=turn), touched=[id_of(b"%d" % n) for n in range(0, 200, 3)]))

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(write, stores))
    assert all(row[COLUMNS.index("size")] == 9 for row in stores[0].rows())


def test_a_database_that_is_not_known_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="oracle"):
        connect({"kind": "oracle"})
    with pytest.raises(StoreError):
        connect({"kind": "sqlite", "path": str(tmp_path / "not there")})
