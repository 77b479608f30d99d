"""`loadframe ladder`: what it refuses, and what a run that was killed or stopped keeps."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
RUNGS = """
[[change]]
name = "wal"
target = { settings = { journal_mode = "wal" } }
[[change]]
name = "cache"
target = { settings = { cache_size = 4000 } }
"""


@pytest.fixture
def rungs(study: Path) -> Path:
    """A small study with two changes."""
    study.write_text(study.read_text() + RUNGS)
    return study


@pytest.mark.long
def test_a_study_without_changes_is_refused(loadframe: Command, study: Path) -> None:
    done = loadframe("ladder", str(study), "--json")
    assert done.code == 1
    assert "has no change to measure" in done.json["message"]
    assert "[[change]]" in done.json["remedy"]


def test_a_change_that_cannot_be_is_refused_before_anything_starts(loadframe: Command, rungs: Path) -> None:
    rungs.write_text(
        rungs.read_text() + '[[change]]\nname = "unsafe"\ntarget = { settings = { synchronous = "OFF" } }\n'
    )
    done = loadframe("ladder", str(rungs))
    assert done.code == 1
    assert "'unsafe' gives up durability" in done.err
    assert not (rungs.parent / "runs").exists()


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_ladder_that_was_ended_is_shown_as_far_as_it_went(
    loadframe: Command, start: Command, rungs: Path, number: int, code: int
) -> None:
    """All rungs are kept, and known from the beginning; what they give is not measured to the end."""
    long = ["--set", "measure.blocks={min=20,max=20}", "--set", "measure.budget=10m", "--set", "load.levels=[1]"]
    running = start("ladder", str(rungs), "--keep-all", *long, steps=1)
    _, err = running.end(number)
    assert running.process.returncode == code, err
    run = running.run()
    shown = loadframe("report", str(run))
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Stopped after 2 changes")
    assert "kept" in shown.out
    document = json.loads(loadframe("report", str(run), "--json").out)
    assert (document["schema"], document["finished"]) == ("loadframe.ladder/1", False)
    assert document["order"] == ["wal", "cache"]
    assert 'class="answer"' in (run / "report.html").read_text()
