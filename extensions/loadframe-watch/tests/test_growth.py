"""`loadframe growth`: a load from CSV, its forecast and scores, and what is no load."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from loadframe.cli.main import app

Command = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`loadframe growth ARGUMENTS` in this process, in a folder with load.csv: 10 us an entry up to 60,000 entries, and
    up to ten times as much beyond."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    rows, seconds, reads, before = ["entries,seconds,reads"], 0.0, 0.0, 0
    for after in range(5_000, 600_001, 5_000):
        outside = max(0.0, 1 - 60_000 / ((before + after) / 2)) * (after - before)
        seconds += (1e-5 * (after - before) + 9e-5 * outside) * (1 + 0.02 * math.sin(after))
        reads += 4 * outside
        rows.append(f"{after},{seconds:.6f},{reads:.0f}")
        before = after
    (tmp_path / "load.csv").write_text("\n".join(rows))

    def run(*arguments: str, stdin: str | None = None) -> Result:
        done = CliRunner().invoke(app, ["growth", *arguments], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def document(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_end_of_memory_and_a_larger_size_are_told(here: Command) -> None:
    found = document(here("load.csv", "--at", "1M,100M", "--json"))
    assert found["schema"] == "loadframe.growth/1"
    assert found["end"]["confirmed"]
    assert found["end"]["entries"]["low"] <= 60_000 <= found["end"]["entries"]["high"]
    assert [point["entries"] for point in found["at"]] == [1e6]
    assert found["at"][0]["rate"]["low"] <= 1 / (1e-5 + 9e-5 * 0.94) <= found["at"][0]["rate"]["high"]
    assert [one["entries"] for one in found["not_at"]] == [1e8]


def test_the_rest_of_a_load_scores_the_forecast(here: Command) -> None:
    found = document(here("load.csv", "--up-to", "200k", "--json"))
    assert found["entries"] == 200_000
    assert found["scored"][0]["entries"] == 600_000
    assert found["scored"][0]["rate_inside"]
    assert found["scored"][0]["seconds_inside"]


def test_a_person_reads_the_same(here: Command) -> None:
    done = here("load.csv", "--at", "1M,100M", "--memory", "pool=8MiB", "--database", "80MiB")
    assert done.exit_code == 0, done.stderr
    assert "The database leaves its memory (pool) at" in done.stdout
    assert "100,000,000: 167 times the 600,000 entries that were seen" in " ".join(done.stdout.split())


def test_from_standard_input_without_reads(here: Command, tmp_path: Path) -> None:
    text = "\n".join(line.rpartition(",")[0] for line in (tmp_path / "load.csv").read_text().splitlines())
    found = document(here("-", "--json", stdin=text))
    assert found["end"]["by_reads"] is None
    assert not found["end"]["confirmed"]


def test_a_row_in_which_nothing_came_is_time_of_the_next_entries(here: Command, tmp_path: Path) -> None:
    """A loader that notes how far it is each second stands still while a transaction is committed."""
    rows = (tmp_path / "load.csv").read_text().splitlines()
    entries, seconds, reads = rows[60].split(",")
    between = (float(seconds) + float(rows[61].split(",")[1])) / 2
    (tmp_path / "stalled.csv").write_text("\n".join([*rows[:61], f"{entries},{between},{reads}", *rows[61:]]))
    assert document(here("stalled.csv", "--json")) == document(here("load.csv", "--json"))
    done = here("-", stdin="entries,seconds\n5,1\n6,2\n6,1.5\n7,3\n")
    assert done.exit_code == 1 and "line 4: seconds is 1.5 after 2" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("entries,seconds\n1,1\n", "has 1 row;"),
        ("entries,seconds\n5,1\n5,2\n5,3\n", "entries is 5 in every row"),
        ("entries,rate\n1,1\n2,2\n", "unknown"),
        ("entries\n1\n2\n", "must name entries and seconds"),
        ("entries,seconds\n5,1\n4,2\n", "line 3: entries is 4 after 5"),
        ("entries,seconds\n5,1\n6,1\n", "line 3: seconds is 1 after 1"),
        ("entries,seconds,reads\n5,1,9\n6,2,8\n", "line 3: reads is 8 after 9"),
        ("entries,seconds\n5,1\n6,-2\n", "seconds is -2"),
        ("entries,seconds\n5,1\n6\n", "has 1 cell "),
    ],
)
def test_what_is_no_load_is_refused_with_its_line(here: Command, text: str, said: str) -> None:
    done = here("-", stdin=text)
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "many"), "is no number of entries"),
        (("--at", "0"), "is no number of entries"),
        (("--memory", "8MiB"), "is not NAME=SIZE"),
        (("--memory", "pool=8"), "is not an amount of memory"),
        (("--memory", "pool=8MiB"), "does not tell how many entries it holds"),
        (("--up-to", "10"), "no window up to 10 entries"),
    ],
)
def test_options_that_say_nothing_are_refused(here: Command, arguments: tuple[str, ...], said: str) -> None:
    done = here("load.csv", *arguments)
    assert done.exit_code == (1 if arguments[0] == "--up-to" else 2)
    assert said in " ".join(done.stderr.split())


def test_three_rows_are_no_forecast_and_that_is_the_answer(here: Command) -> None:
    done = here("-", stdin="entries,seconds\n5,1\n6,2\n7,3\n")
    assert done.exit_code == 0
    assert "No forecast." in done.stdout
