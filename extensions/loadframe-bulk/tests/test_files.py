"""The input of bulk-ingest: what is made is what is read, and broken lines are left out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.host.privilege import US
from loadframe_bulk.client import BLOCK_BYTES, blocks_of, valid_rows
from loadframe_bulk.workload import make_file


@given(st.binary(max_size=3 * BLOCK_BYTES // 2))
def test_blocks_are_whole_lines_and_together_the_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "one.csv")
        path.write_bytes(content)
        blocks = list(blocks_of(str(path)))
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) in (content, content + b"\n")


def test_a_line_longer_than_a_block_stays_one_line(tmp_path: Path) -> None:
    content = b"a" * (3 * BLOCK_BYTES) + b"\nb\n"
    (tmp_path / "one.csv").write_bytes(content)
    assert b"".join(blocks_of(str(tmp_path / "one.csv"))) == content


def test_lines_that_are_no_rows_are_left_out() -> None:
    lines = [
        b"k1,5,10,n",
        b"broken",
        b",5,10,n",
        b"k2,x,10,n",
        b"k3,5,ten,n",
        b"k4,5,-3,",
        b"k\\5,5,1,n",
        b"k6,1,1,a\tb",
    ]
    text, rows, amount = valid_rows(b"\n".join(lines) + b"\n")
    assert text == b"k1\t5\t10\tn\nk4\t5\t-3\t\n"
    assert (rows, amount) == (2, 7)
    assert valid_rows(b"broken\n") == (b"", 0, 0)


@given(st.binary(max_size=400))
def test_whatever_a_line_holds_a_row_has_four_columns_and_nothing_that_copy_reads_otherwise(block: bytes) -> None:
    text, rows, _ = valid_rows(block)
    assert text.count(b"\n") == rows
    assert all(line.count(b"\t") == 3 and b"\\" not in line for line in text.split(b"\n")[:-1])


@pytest.mark.parametrize("size", [1 << 16, 1 << 20, 3_000_000])
def test_a_file_has_its_size_and_what_it_is_said_to_hold(tmp_path: Path, size: int) -> None:
    made = make_file(tmp_path / "one.csv", size, seed=3, owner=US)
    assert size - 200 <= made.path.stat().st_size <= size
    counted = [valid_rows(block)[1:] for block in blocks_of(str(made.path))]
    assert made.content.rows == sum(rows for rows, _ in counted)
    assert made.content.amount == sum(amount for _, amount in counted)
    assert 0 < made.content.rows < made.path.read_bytes().count(b"\n"), "some lines are broken"
