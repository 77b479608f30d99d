"""The day files of a watch keep every line that was written, whatever ends the watcher or the disk."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadframe.errors import RecordingError, RunError
from loadframe_watch.child import compact
from loadframe_watch.days import days, lines, observed
from loadframe_watch.journal import Journal
from watch_farm import BEGUN_S, DAY_S, SimulatedClocks

WRITES = """
import sys
from pathlib import Path
from loadframe_watch.journal import Journal, Clocks
journal = Journal(Path(sys.argv[1]), Clocks())
while journal.write("sample", {"values": {"a": "x" * 3000}}):
    print(journal.n, flush=True)
"""


FILLS = """
import sys
from pathlib import Path
from loadframe_watch.journal import Journal, Clocks
from loadframe_watch.days import lines
folder = Path(sys.argv[1])
filler = folder / "filler"
filler.write_bytes(b"x" * 300_000)
journal = Journal(folder / "w", Clocks())
written = 0
while journal.write("sample", {"values": {"a": "x" * 3000}}):
    written += 1
assert journal.lost_lines == 1 and written > 10, written
assert not journal.write("sample", {"values": {"a": "x" * 3000}})
assert not journal.keep({"model": {"text": "x" * 100_000}})
filler.unlink()
assert journal.write("sample", {"values": {}}) and journal.keep({"model": {}})
journal.close()
assert [line.n for line in lines(folder / "w")] == list(range(1, written + 2))
assert not list((folder / "w").glob("*.tmp"))
print("held")
"""


def numbers(folder: Path) -> list[int]:
    return [line.n for line in lines(folder)]


def written(folder: Path, clocks: SimulatedClocks, count: int) -> None:
    journal = Journal(folder, clocks)
    for _ in range(count):
        assert journal.write("sample", {"load": 1.0})
        clocks.advance(10)
    journal.close()


def test_a_torn_line_is_left_out_and_the_next_one_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    clocks = SimulatedClocks()
    written(tmp_path, clocks, 3)
    (day,) = days(tmp_path)
    with day.files[0].open("ab") as stream:
        stream.write(b'{"n":4,"kind":"sample","at_s":17')
    assert numbers(tmp_path) == [1, 2, 3]
    written(tmp_path, clocks, 2)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_a_watcher_that_is_killed_loses_no_line_that_it_has_written(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITES, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(200)]
        process.send_signal(signal.SIGKILL)
        told += [int(text) for text in process.stdout.read().splitlines() if text]
    before = numbers(tmp_path)
    assert told[-1] <= before[-1]
    assert before == list(range(1, before[-1] + 1))
    written(tmp_path, SimulatedClocks(), 1)  # the lock has gone with it
    assert before[-1] + 1 in numbers(tmp_path)


def test_a_file_with_the_name_of_a_day_that_no_calendar_has_is_read_as_any(tmp_path: Path) -> None:
    (tmp_path / "2026-02-30.jsonl").touch()
    assert list(lines(tmp_path, since_s=1.0)) == []


def test_one_watcher_per_folder(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SimulatedClocks())
    with pytest.raises(RunError, match="Another watcher writes to"):
        Journal(tmp_path, SimulatedClocks())
    journal.close()
    Journal(tmp_path, SimulatedClocks()).close()


def test_lines_that_a_full_disk_does_not_take_are_counted_and_none_is_torn(tmp_path: Path) -> None:
    """A limit of the file's size is met as a full disk is: the first part of a line is taken, then nothing is."""
    clocks = SimulatedClocks()
    journal = Journal(tmp_path, clocks)
    assert journal.write("sample", {"load": 1.0})
    size = days(tmp_path)[0].files[0].stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        assert [journal.write("sample", {"load": 2.0}) for _ in range(3)] == [False] * 3
        assert not journal.keep({"model": {"text": "x" * 1000}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert journal.lost_lines == 3 and journal.lost_since_s == clocks.wall()
    assert journal.write("sample", {"load": 3.0})
    journal.close()
    assert [line.data["load"] for line in lines(tmp_path)] == [1.0, 3.0]
    assert numbers(tmp_path) == [1, 2]
    assert not list(tmp_path.glob("*.tmp"))


def test_a_disk_that_is_really_full_tears_no_line(tmp_path: Path) -> None:
    """A small file system of its own, in a mount namespace of its own."""
    small = 'mount -t tmpfs -o size=512k none "$0" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", small, str(tmp_path), sys.executable, "-c", FILLS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no file system may be mounted here")
    assert done.stdout == "held\n", done.stderr


def test_a_day_is_compacted_once_it_is_over_and_reads_as_before(tmp_path: Path) -> None:
    clocks = SimulatedClocks()
    written(tmp_path, clocks, 50)
    clocks.advance(DAY_S)
    journal = Journal(tmp_path, clocks)
    assert journal.new_day() and journal.write("sample", {"load": 2.0})
    (ended,) = journal.ended_days()
    size = ended.stat().st_size
    compact(ended)
    assert not ended.exists() and ended.with_name(f"{ended.name}.zst").stat().st_size < size / 4
    assert numbers(tmp_path) == list(range(1, 52))
    journal.close()


def test_a_day_that_is_written_to_is_not_compacted(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SimulatedClocks())
    journal.write("sample", {"load": 1.0})
    (day,) = days(tmp_path)
    compact(day.files[0])
    assert days(tmp_path)[0].files == day.files
    journal.close()


@pytest.mark.parametrize("again", [False, True])
def test_a_machine_that_fails_while_a_day_is_compacted_gives_no_line_twice(tmp_path: Path, again: bool) -> None:
    """The compacted file was there, and the day's own not removed yet; again: then it is compacted once more."""
    written(tmp_path, SimulatedClocks(), 5)
    (file,) = days(tmp_path)[0].files
    shutil.copy(file, tmp_path / "kept")
    compact(file)
    shutil.move(tmp_path / "kept", file)
    if again:
        compact(file)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_a_clock_set_back_to_a_day_that_was_compacted_loses_nothing(tmp_path: Path) -> None:
    clocks = SimulatedClocks()
    written(tmp_path, clocks, 3)
    compact(days(tmp_path)[0].files[0])
    clocks.wall_s = BEGUN_S - 5
    written(tmp_path, clocks, 2)
    assert len(days(tmp_path)[0].files) == 2
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]
    compact(days(tmp_path)[0].files[1])
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_the_oldest_days_are_removed_by_number_and_by_size(tmp_path: Path) -> None:
    clocks = SimulatedClocks()
    for _ in range(6):
        written(tmp_path, clocks, 3)
        clocks.advance(DAY_S)
    journal = Journal(tmp_path, clocks)
    assert journal.write("sample", {})
    before = days(tmp_path)
    assert journal.forget(7, 1 << 30) == ([], 0)
    removed, freed = journal.forget(5, 1 << 30)
    assert removed == [one.day for one in before[:2]]
    assert freed == sum(one.bytes_on_disk for one in before[:2])
    left = before[-2].bytes_on_disk + before[-1].bytes_on_disk
    assert journal.forget(400, left)[0] == [one.day for one in before[2:-2]]
    assert journal.forget(1, 0)[0] == [before[-2].day]
    assert [one.day for one in days(tmp_path)] == [before[-1].day]  # it is being written to
    journal.close()


def test_a_clock_that_is_years_ahead_removes_no_day(tmp_path: Path) -> None:
    clocks = SimulatedClocks()
    written(tmp_path, clocks, 3)
    clocks.wall_s += 3650 * DAY_S
    journal = Journal(tmp_path, clocks)
    assert journal.write("sample", {})
    assert journal.forget(15, 1 << 30) == ([], 0)
    journal.close()


def test_a_damaged_day_and_a_later_version_are_refused_in_words(tmp_path: Path) -> None:
    written(tmp_path, SimulatedClocks(), 40)
    (file,) = days(tmp_path)[0].files
    compact(file)
    compacted = file.with_name(f"{file.name}.zst")
    data = bytearray(compacted.read_bytes())
    data[len(data) // 2] ^= 0xFF
    compacted.write_bytes(data)
    with pytest.raises(RecordingError, match="damaged zstd frame"):
        numbers(tmp_path)
    compacted.unlink()
    file.write_text('{"n":1,"kind":"head","at_s":1,"up_s":1,"schema":"loadframe.watch/9"}\n')
    with pytest.raises(RecordingError, match=r"loadframe\.watch/9"):
        numbers(tmp_path)


def test_a_unit_of_work_that_failed_has_no_response(tmp_path: Path) -> None:
    """A refusal comes within a millisecond: beyond the bend it would make the response look fast."""
    units = [{"response_s": 2.0, "error": ""}, {"response_s": 0.001, "error": "status 503"}]
    told = [
        {"n": at, "kind": "unit", "at_s": 59.0 + at, "up_s": 0.0, "load": 5.0, **unit}
        for at, unit in enumerate(units, 1)
    ]
    (tmp_path / "1970-01-01.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in told))
    table = observed(tmp_path)
    assert table.response_s == [2.0] and table.load == [5.0]
