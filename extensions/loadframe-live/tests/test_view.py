"""What the page shows of a run: read as it grows, or all at once, it is the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadframe.experiments.reading import answer_of, conclude
from loadframe.model import Capacity, CapacityObjective, Step, TargetState
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.runs.lines import PROGRESS, Told
from loadframe_live.follower import Listing
from loadframe_live.shown import Places
from loadframe_live.terminal import points_of
from loadframe_live.view import Reads, RunView

from .conftest import DATA

READS = Reads(conclude, answer_of)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run in progress of a study that was measured before, without a step."""
    made = RunFolder.create(tmp_path, "job-queue")
    made.write_record("study.json", "study", RunFolder.open(DATA / "job-queue").study())
    made.append_line("treatments.jsonl", "treatment", Treatment("A", "as given", TargetState()))
    return made


def add(run: RunFolder, step: Step) -> None:
    run.append_line("steps.jsonl", "step", step)


def test_each_step_is_told_once_when_it_has_ended(run: RunFolder, make_step: Callable[..., Step]) -> None:
    view = RunView(run, "0/x")
    first = view.refresh()
    assert first["heading"]["status"] == "running"
    assert first["heading"]["treatments"] == {"A": "as given"}
    assert view.refresh() == {}
    add(run, make_step(2.0, 100.0))
    assert [step["level"] for step in view.refresh()["steps"]] == [2.0]
    add(run, make_step(4.0, 180.0))
    assert [step["throughput"] for step in view.refresh()["steps"]] == [180.0]
    assert view.refresh() == {}


def test_a_window_with_too_little_in_it_and_what_warmed_is_in_no_curve(
    run: RunFolder, make_step: Callable[..., Step]
) -> None:
    for step in (
        make_step(2.0, 100.0),
        make_step(4.0, 0.0, flags=("too-few",)),
        make_step(4.0, 9.0, purpose="warming"),
    ):
        add(run, step)
    view = RunView(run, "0/x")
    view.refresh()
    assert points_of(view.steps) == {"A": [(2.0, 100.0)]}
    assert len(view.steps) == 3


def test_read_at_once_it_is_what_was_told_bit_by_bit(run: RunFolder, make_step: Callable[..., Step]) -> None:
    grown = RunView(run, "0/x")
    for level in (1.0, 2.0, 4.0):
        run.tell(Told("step", treatment="A", level=level, seconds=1.0, purpose="curve"))
        grown.refresh()
        add(run, make_step(level, 100 * level))
        run.tell(Told("recorder", cpu_share=0.01, rss_bytes=2e7, late_ticks=0))
        grown.refresh()
    run.tell(Told("say", "a word"))
    grown.refresh()
    at_once = RunView(run, "0/x")
    at_once.refresh()
    assert grown.whole() == at_once.whole()
    assert len(grown.whole()["steps"]) == 3


def test_the_step_in_progress_is_told_until_the_run_ends(run: RunFolder) -> None:
    view = RunView(run, "0/x")
    run.tell(Told("step", treatment="A", level=8.0, seconds=3.0, purpose="curve"))
    assert view.refresh()["now"]["level"] == 8.0
    run.close()
    assert view.refresh()["now"] is None
    assert view.status == "finished"


def test_limits_fill_up_in_words(run: RunFolder, make_step: Callable[..., Step]) -> None:
    measured = RunFolder.open(DATA / "job-queue").steps()[0]
    add(run, measured)
    view = RunView(run, "0/x")
    view.refresh()
    uses: dict[str, Any] = view.steps[0]["uses"]
    assert uses
    for name, (share, words, reached) in uses.items():
        assert view.limits[name]["title"]
        assert share > 0
        assert words
        assert reached == (share >= 0.97)


def test_a_torn_line_waits_for_its_end(run: RunFolder, make_step: Callable[..., Step]) -> None:
    add(run, make_step(2.0, 100.0))
    whole = (run.path / "steps.jsonl").read_bytes()
    (run.path / "steps.jsonl").write_bytes(whole + whole[:40])
    view = RunView(run, "0/x")
    assert len(view.refresh()["steps"]) == 1
    (run.path / "steps.jsonl").write_bytes(whole + whole)
    assert len(view.refresh()["steps"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"[1]\n",
        b'{"schema":"loadframe.step/99"}\n',
        b'{"schema":"loadframe.step/4","number":"1"}\n',
        b"\xff\xfe\n",
        b"x" * (3 << 20) + b"\n",
    ],
)
def test_a_damaged_line_is_told_and_what_came_before_stays(
    run: RunFolder, make_step: Callable[..., Step], line: bytes
) -> None:
    add(run, make_step(2.0, 100.0))
    with (run.path / "steps.jsonl").open("ab") as file:
        file.write(line)
    view = RunView(run, "0/x")
    assert str(run.path) in view.refresh()["error"]
    assert len(view.whole()["steps"]) == 1
    assert "error" not in view.refresh(), "told once"


@pytest.mark.parametrize("name", ["study.json", "run.json", PROGRESS, "rounds.json"])
def test_a_pipe_in_the_place_of_a_file_keeps_no_one_waiting(run: RunFolder, name: str) -> None:
    (run.path / name).unlink(missing_ok=True)
    os.mkfifo(run.path / name)
    view = RunView(run, "0/x")
    assert "pipe" in view.refresh()["error"]


def test_the_list_has_old_and_new_runs_and_nothing_else(run: RunFolder, tmp_path: Path) -> None:
    for name in ("investigation", "ladder", "tuning"):
        shutil.copytree(DATA / name, tmp_path / f"20261101T000000Z-{name}")
    (tmp_path / "notes").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    listing = Listing(Places([tmp_path]))
    begun = listing.look()
    assert [view.id for view in begun] == [f"0/{run.path.name}"]
    by_study = {row["name"].partition("Z-")[2]: row["status"] for row in listing.rows.values()}
    assert by_study == {"job-queue": "running", "investigation": "finished", "ladder": "finished", "tuning": "finished"}
    assert listing.look() == [], "nothing has changed"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ladder", "Set wal (journal_mode from DELETE to wal): 4.8x on average"),
        pytest.param(
            "tuning",
            "Set the 4 settings below: 50x on average over 2 and 4 workers",
            marks=pytest.mark.extension("loadframe_tune"),
        ),
        ("job-queue", "One worker already hits the limit: every commit waits for the disk."),
    ],
)
def test_every_kind_of_run_has_its_answer(name: str, answer: str) -> None:
    view = RunView(RunFolder.open(DATA / name), "0/x", READS)
    assert view.refresh()["heading"]["answer"] == view.unopened()["answer"]
    assert view.heading["answer"].startswith(answer)


def test_a_run_in_progress_is_not_concluded(run: RunFolder) -> None:
    unread = Reads(lambda _: pytest.fail("it has not ended"), lambda _: pytest.fail("it has not ended"))
    view = RunView(run, "0/x", unread)
    assert view.refresh()["heading"]["answer"] == view.unopened()["answer"] == ""


def test_a_search_for_the_capacity_has_its_answer(run: RunFolder, make_step: Callable[..., Step]) -> None:
    run.write_record("host.json", "host", RunFolder.open(DATA / "job-queue").host())
    add(run, make_step(4.0, 100.0))
    asked = CapacityObjective(loss_ratio=0.01)
    found = Capacity("concurrency", "workers", asked, "found", 4, 4, 8, 0.01, 0.05, 1.0, 2.0, 0.0, False, (), ())
    run.write_record("capacity.json", "capacity-record", found)
    run.close()
    answer = RunView(run, "0/x", READS).refresh()["heading"]["answer"]
    assert answer.startswith("Capacity: 4 workers. 4 workers is shown to meet and 8 workers to miss")


def test_a_single_run_can_be_named(tmp_path: Path) -> None:
    shutil.copytree(DATA / "ladder", tmp_path / "one")
    shutil.copytree(DATA / "ladder", tmp_path / "other")
    places = Places([tmp_path / "one"])
    assert places.ids() == ["0/one"]
    places.find("0/one")
    with pytest.raises(Exception, match="no run"):
        places.find("0/other")
