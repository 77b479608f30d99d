"""Where the extension is not installed, what needs it says so, and its runs are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[3] / "tests" / "data" / "runs"
CORE = """
import sys
from loadframe import entry_points
every = entry_points.distributions
entry_points.distributions = lambda: [place for place in every() if place.metadata["Name"] != "loadframe-pipelines"]
from loadframe.cli.entry import main
sys.exit(main())
"""
STUDY = """
[study]
name = "staged"
question = "Which stage limits it?"

[target]
kind = "service"
command = ["python3", "service.py"]

[[target.metrics]]
stages = "{log}"

[workload]
kind = "http"

[load]
axis = "concurrency"
levels = [1, 16]
"""


def without(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CORE, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["bulk-ingest", "metadata-index"])
def test_a_run_with_stages_is_read_and_the_extension_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(RUNS / name)
    done = without("curve", name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Not available here: the family of metrics 'pipeline'." in done.stderr
    assert "needs the extension loadframe-pipelines, which is not installed" in done.stderr
    assert "requests" in done.stdout or "throughput" in done.stdout.lower()


@pytest.mark.long
def test_files_of_stages_are_refused_for_the_want_of_it(tmp_path: Path) -> None:
    (tmp_path / "app.log").touch()
    done = without("limits", "--stages", "app.log", folder=tmp_path)
    assert done.returncode == 1
    assert "--stages needs the extension loadframe-pipelines, which is not installed" in done.stderr


@pytest.mark.long
def test_a_study_that_names_such_a_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = without("measure", "study.toml", folder=tmp_path)
    assert done.returncode == 1
    assert "stages in [[target.metrics]] needs the extension loadframe-pipelines" in done.stderr
