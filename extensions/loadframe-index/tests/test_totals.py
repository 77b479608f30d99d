"""The totals of each directory equal the entries, whatever was written, in whichever order and by whom."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from loadframe_index import queries
from loadframe_index.entries import Entry, id_of
from loadframe_index.store import Batch, Row, Store, connect, rows_of

NAMES = [b"a", b"b", b"a/c", b"a/c/d", b"b/e", b"b/e/f", b"a/g", b"h"]
LARGEST = (1 << 63) - 1


def entry(path: bytes, kind: str, size: int, links: int = 1) -> Entry:
    parent, _, name = path.rpartition(b"/")
    return Entry(path, parent, name, 1, 7, kind, size, size // 512, links, 0, 0, 0o644, 1, 2, 3)


def rows(entries: list[Entry], seen_ns: int) -> list[Row]:
    return rows_of(entries, [id_of(each.path) for each in entries], seen_ns)


def counted(store: Store) -> dict[bytes, tuple[int | bytes | None, ...]]:
    """The totals, from the entries."""
    found: dict[bytes, list[int]] = {}
    above: dict[bytes, bytes] = {}
    for key, parent, _, _, _, _, kind, size, blocks, links, *_ in store.rows():
        sums = found.setdefault(parent, [0] * 6)
        linked, file = links > 1 and kind != "d", kind in ("f", "l")
        more = (1, linked, blocks, size >> 32 if file else 0, size % (1 << 32) if file else 0, 0 if file else size)
        for at, one in enumerate(more):
            sums[at] += one if at < 2 or not linked else 0
        if kind == "d":
            above[key] = parent
    keys = found.keys() | above.keys()
    return {key: (above.get(key), *found.get(key, [0] * 6)) for key in keys}


def kept(store: Store) -> dict[bytes, tuple[int | bytes | None, ...]]:
    names = "directory, above, entries, linked, blocks, high, low, other"
    return {key: tuple(others) for key, *others in store.ask(f"SELECT {names} FROM totals")}


def some(rng: random.Random) -> list[Entry]:
    size = rng.choice((0, 511, 4096, 5 << 32))
    names = rng.sample(NAMES, rng.randint(1, 5))
    return [entry(name, rng.choice("ddffflp"), size, rng.choice((1, 1, 2))) for name in names]


def test_whatever_is_written_the_totals_equal_the_entries(store: Store) -> None:
    rng = random.Random(3)
    for number in range(150):
        batch = Batch(
            rows=rows(some(rng), number + rng.randint(-3, 1)),
            touched=[id_of(rng.choice(NAMES))],
            removed=rng.sample(NAMES, rng.choice((0, 0, 0, 1, 2))),
            seen_ns=number,
        )
        store.apply(batch)
        if number % 7 == 0:
            store.apply(batch)
        if number % 40 == 39:
            store.forget_before(number)
        assert kept(store) == counted(store)
    store.apply(Batch(removed=[b"a", b"b", b"h"], seen_ns=1000))
    assert store.count() == 0 and kept(store) == {}


@pytest.mark.long
def test_two_who_write_the_same_entries_at_once_count_them_once(store: Store, another: Callable[[], Store]) -> None:
    stores = [another() for _ in range(3)]

    def write(seed: int) -> None:
        rng = random.Random(seed)
        for number in range(15):
            stores[seed].apply(Batch(rows=rows(some(rng), number), removed=rng.sample(NAMES, 1), seen_ns=number))

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(write, range(len(stores))))
    assert kept(store) == counted(store)


def test_a_batch_that_fails_leaves_the_totals_as_they_were(store: Store) -> None:
    store.apply(Batch(rows=rows([entry(b"a", "d", 4096)], 1)))
    before = kept(store)
    broken = Batch(rows=rows([entry(b"a/c", "f", 100)], 2), log="log", number=None)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"."):
        store.apply(broken)
    assert kept(store) == before == counted(store)


def test_sizes_that_do_not_fit_into_a_sum_of_64_bits(store: Store) -> None:
    """A sparse file may have 8 EiB on XFS."""
    store.apply(Batch(rows=rows([entry(name, "f", LARGEST) for name in (b"a", b"b", b"c")], 1)))
    assert queries.usage(store).apparent_bytes == 3 * LARGEST
    assert kept(store) == counted(store)


def test_du_of_a_whole_tree_reads_no_entry(tmp_path: Path) -> None:
    file = tmp_path / "entries.db"
    file.touch()
    with closing(connect({"kind": "sqlite", "path": str(file)})) as store:
        store.create("du")
        store.apply(Batch(rows=rows([entry(b"a", "d", 4096), entry(b"a/c", "f", 5000)], 1)))
        asked: list[str] = []
        ask = store.ask

        def told(question: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
            asked.append(question)
            return ask(question, values)

        store.ask = told  # type: ignore[method-assign, assignment]
        assert queries.usage(store).apparent_bytes == 9096
        assert any("FROM totals" in question for question in asked)
        assert not any("FROM entries" in question for question in asked)


@pytest.mark.parametrize("indexes", ["none", "parent", "du", "all"])
@pytest.mark.parametrize("under", [b"", b"a", b"a/c", b"not there"])
def test_with_totals_and_without_du_is_the_same(tmp_path: Path, indexes: str, under: bytes) -> None:
    file = tmp_path / "entries.db"
    file.touch()
    with closing(connect({"kind": "sqlite", "path": str(file)})) as store:
        store.create(indexes)
        store.apply(Batch(rows=rows([
            entry(b"", "d", 100, 4), entry(b"a", "d", 200, 3), entry(b"a/c", "d", 300, 2), entry(b"a/c/d", "f", 1000),
            entry(b"a/c/e", "f", 5000, 2), entry(b"h", "f", 5000, 2), entry(b"a/p", "p", 7),
        ], 1)))  # fmt: skip
        expected = {
            b"": queries.Usage(7, 6, (100 // 512 + 1000 // 512 + 5000 // 512) * 512, 6607, 6000),
            b"a": queries.Usage(5, 5, (1000 // 512 + 5000 // 512) * 512, 6507, 6000),
            b"a/c": queries.Usage(3, 3, (1000 // 512 + 5000 // 512) * 512, 6300, 6000),
            b"not there": queries.Usage(0, 0, 0, 0, 0),
        }
        assert queries.usage(store, under) == expected[under]
