"""The answers of the database are those of du and find on the same tree, in bytes and counts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import StudyError, WorkloadError
from loadframe.model import AnswersCompared
from loadframe.reporting.verdict_words import answers_sentence as sentence
from loadframe_index import queries, verifying
from loadframe_index.applying import Following
from loadframe_index.log_readers import Records
from loadframe_index.queries import Wanted, longest_literal, matcher
from loadframe_index.store import Store
from whole_tree import everything


class NoReader:
    """A Reader without records."""

    name, resumes, waiting = "none", False, 0

    def read(self, timeout_s: float) -> Records:
        return Records()

    def inode_of(self, file: bytes) -> int | None:
        return None

    def close(self) -> None:
        pass


@pytest.fixture
def scanned(store: Store, tree: Path) -> Iterator[Store]:
    """A database of a tree with files of several sizes, ages, owners and names."""
    for number in range(60):
        path = tree / f"d{number % 5}" / ("x" * (number % 7)) / f"file-{number}.{('txt', 'dat', 'TXT')[number % 3]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (number * number * 37))
        os.utime(path, (number, 1_600_000_000 + number * 86_400))
        if os.geteuid() == 0:
            os.chown(path, 1000 + number % 3, number % 2)
    (tree / "d1/a").hardlink_to(tree / "d0/file-0.txt")
    (tree / "d2/big").hardlink_to(tree / "d4/xxx/file-59.TXT")
    (tree / "d2/sub").mkdir()
    (tree / "d2/sub/big again").hardlink_to(tree / "d2/big")
    (tree / "d3/to").symlink_to("a" * 100)
    (tree / "d3/[x]\n*\\").touch()
    os.mkfifo(tree / "d3/pipe")
    with (tree / "d4/sparse").open("wb") as file:
        file.truncate(10_000_000)
    following = Following(store, tree, NoReader())
    following.start()
    following.close()
    yield store


@pytest.mark.parametrize("under", [b"", b"d2", b"d2/sub", b"d4"])
def test_usage_is_that_of_du(scanned: Store, tree: Path, under: bytes) -> None:
    for compared in verifying.compare_usage(scanned, tree, under):
        assert compared.equal and compared.target > 0, compared


def test_what_is_in_the_database_alone_is_a_difference(scanned: Store, tree: Path) -> None:
    (tree / "d0/new").write_bytes(bytes(5000))
    assert not any(compared.equal for compared in verifying.compare_usage(scanned, tree))
    compared = everything(scanned, tree)
    assert any("only find has d0/new" in difference for difference in compared.differences)
    assert any("differ in what they tell of d0" in difference for difference in compared.differences)
    (found, bytes_) = verifying.compare_find(scanned, tree, Wanted(name=b"new"))
    assert not found.equal and not bytes_.equal
    (tree / "d0/new").unlink()
    (tree / "d1/a").unlink()
    assert "only the database has d1/a" in everything(scanned, tree).differences
    assert not verifying.compare_find(scanned, tree, Wanted(name=b"a"))[0].equal


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(type="d"),
        Wanted(type="l"),
        Wanted(type="p"),
        Wanted(larger_than=5000),
        Wanted(smaller_than=1369, type="f"),
        Wanted(larger_than=36, smaller_than=38),
        Wanted(modified_after_s=1_600_000_000 + 30 * 86_400),
        Wanted(modified_before_s=1_600_000_000 + 30 * 86_400),
        Wanted(name=b"*.txt"),
        Wanted(name=b"file-[0-3]?.*"),
        Wanted(name=b"*[!t]"),
        Wanted(name=b"*\n*"),
        Wanted(name=b"\\[x\\]*"),
        Wanted(name=b"*[[]*"),
        Wanted(name=b"xx"),
        Wanted(name=b""),
        Wanted(under=b"d2", type="f"),
        Wanted(under=b"d4", name=b"*.dat", larger_than=100),
        *([Wanted(uid=1001), Wanted(uid=0, type="f")] if os.geteuid() == 0 else []),
    ],
)
def test_entries_are_those_of_find(scanned: Store, tree: Path, wanted: Wanted) -> None:
    for compared in verifying.compare_find(scanned, tree, wanted):
        assert compared.equal, compared


def test_the_largest_of_each_sort(scanned: Store, tree: Path) -> None:
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    expected = sorted(files, key=lambda path: (-path.lstat().st_size, os.fsencode(path)))[:5]
    largest = queries.largest_files(scanned, 5)
    assert [os.fsdecode(found.path) for found in largest] == [str(path.relative_to(tree)) for path in expected]
    owners = queries.largest_owners(scanned, 10)
    assert sum(owner.bytes_on_disk for owner in owners) == queries.usage(scanned).bytes_on_disk
    assert sum(owner.entries for owner in owners) == queries.usage(scanned).files
    fullest = queries.fullest_directories(scanned, 1)[0]
    assert fullest.entries == max(len(list(path.iterdir())) for path in tree.rglob("*") if path.is_dir())


def test_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(StudyError, match="'x' is no type"):
        Wanted(type="x")


def test_a_tree_that_du_cannot_read_is_told(store: Store, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="du gave no number"):
        verifying.compare_usage(store, tmp_path / "none")


def test_a_class_that_depends_on_the_locale_is_refused() -> None:
    with pytest.raises(StudyError, match="locale"):
        matcher(b"[[:alpha:]]*")


PATTERNS = st.lists(st.sampled_from([b"*", b"?", b"[", b"]", b"!", b"-", b"a", b"b", b"\xff", b"\n"]), max_size=8)
TEXTS = st.lists(st.sampled_from([b"a", b"b", b"]", b"-", b"[", b"\xff", b"\n", b".", b"!"]), min_size=1, max_size=5)


def test_patterns_are_those_of_find(tmp_path: Path) -> None:
    """Each of many patterns, over each of many names, asked of find itself."""
    names: set[bytes] = set()
    patterns: set[bytes] = {
        b"[]a]",
        b"[!]a]",
        b"[a-]",
        b"[]-a]",
        b"[b-a]",
        b"[^a]",
        b"[a",
        b"*a*",
        b"[!a-b]*",
        b"a[",
        b"?",
    }

    @given(PATTERNS.map(b"".join), TEXTS.map(b"".join))
    def collect(pattern: bytes, name: bytes) -> None:
        patterns.add(pattern)
        if name not in (b".", b".."):
            names.add(name)

    collect()
    for name in names:
        (tmp_path / os.fsdecode(name)).touch()
    for pattern in patterns:
        command = [b"find", bytes(tmp_path), b"-mindepth", b"1", b"-name", pattern, b"-printf", rb"%P\0"]
        said = subprocess.run(command, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=True).stdout
        found = {name for name in names if matcher(pattern).fullmatch(name)}
        assert found == set(said.split(b"\0")) - {b""}, pattern


@given(PATTERNS.map(b"".join), TEXTS.map(b"".join))
def test_the_literal_is_in_every_name_that_matches(pattern: bytes, name: bytes) -> None:
    if matcher(pattern).fullmatch(name):
        assert longest_literal(pattern) in name


def test_a_pattern_with_many_stars_takes_no_longer() -> None:
    assert not matcher(b"*a" * 60 + b"b").fullmatch(b"a" * 255)


def test_an_answer_of_the_report_says_that_both_agree_or_where_they_do_not(scanned: Store, tree: Path) -> None:
    found = verifying.compared(scanned, tree, "the tree", 7)
    assert len(found.answers) == 7 and found.equal and not verifying.differing(found)
    assert sentence(found).startswith("The same as du and find, of the tree: bytes on disk ")
    (tree / "d0/new").write_bytes(bytes(3_000_000))
    found = verifying.compared(scanned, tree, "the tree", 7)
    assert found.equal is False
    assert any("only find has d0/new" in one for one in verifying.differing(found))
    assert "entries: the target says" in sentence(found) and not found.equal
    assert found.load == 7
    assert {each.answer for each in found.answers if not each.equal} == {
        "bytes on disk",
        "apparent bytes",
        "entries",
        "files of more than 1 MiB",
        "bytes of files of more than 1 MiB",
    }


def test_answers_that_could_not_be_compared_are_neither_equal_nor_not() -> None:
    none = AnswersCompared("the tree", 7, "du and find", missing="du is not installed")
    assert none.equal is None
    assert sentence(none) == "Not compared with du and find, of the tree: du is not installed." and not none.equal
