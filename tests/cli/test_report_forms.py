"""The forms of a report: which option prints which, and that they exclude one another."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from loadframe.cli.main import app

RECORDED = Path(__file__).parents[1] / "data" / "runs" / "ladder"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "ladder"))


def report(*words: str, browser: str = "") -> Result:
    return CliRunner().invoke(app, ["report", *words], env={"BROWSER": browser} if browser else None)


@pytest.mark.long
def test_each_form_is_printed_and_the_page_is_written_with_each(run: Path) -> None:
    for words, begins in (
        ((), "Set wal (journal_mode from DELETE to wal): 4.8x"),
        (("--format", "md"), "## How many transactions a second"),
        (("--format", "html"), "<!doctype html>"),
        (("--json",), '{"schema": "loadframe.ladder/1"'),
    ):
        page = run / "report.html"
        page.unlink(missing_ok=True)
        done = report(str(run), *words)
        assert (done.exit_code, done.stdout[: len(begins)]) == (0, begins)
        assert page.exists()
    assert report(str(run), "--format", "html").stdout == page.read_text()


def test_a_form_besides_json_is_refused(run: Path) -> None:
    for form in ("md", "html"):
        done = report(str(run), "--json", "--format", form)
        assert done.exit_code == 2
        assert json.loads(done.stdout)["remedy"] == "Leave out one."


def test_the_page_is_opened_in_the_browser_of_the_user(run: Path, tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{opened}'\n")
    browser.chmod(0o755)
    assert report(str(run), "--open", browser=f"{browser} %s").exit_code == 0
    assert opened.read_text() == (run / "report.html").as_uri()
