"""What goes to a terminal, a pipe or a file: nothing of others' words is obeyed, and a stream that takes nothing costs
no measurement."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import loadframe as api
from loadframe.bench.bench import RealBench
from loadframe.cli import faults, terminal
from loadframe.cli.main import app
from loadframe.cli.progress import _Drawn, bars_on
from loadframe.errors import Fault, MachineError, OutputError

Command = Callable[..., Any]
RECORDED = Path(__file__).parents[1] / "data/runs/job-queue"
POINTS = "load,throughput\n1,10\n2,19\n4,30\n8,33\n16,33\n"
HOSTILE = "\x1b]0;owned\x07 \x1b[31mred\x9b0m [/x] [bold]b \u202etxet\u2028line \udcff\r."


@pytest.fixture
def points(tmp_path: Path) -> Path:
    (tmp_path / "points.csv").write_text(POINTS)
    return tmp_path / "points.csv"


# --- others' words ---


def test_what_a_terminal_would_obey_is_shown_escaped() -> None:
    shown = terminal.plain(HOSTILE + "\ttab\nline é")
    assert shown.encode().decode("utf-8").isprintable() is False  # the tab and the line feed
    assert shown.replace("\t", "").replace("\n", "").isprintable()
    assert shown.startswith("\\x1b]0;owned\\x07 \\x1b[31mred\\x9b0m [/x] [bold]b \\u202etxet\\u2028line \\udcff\\r.")
    assert shown.endswith("\ttab\nline é")


def test_progress_draws_others_words_as_they_are() -> None:
    drawn = io.StringIO()
    with bars_on(Console(file=drawn, force_terminal=True, width=200)) as bars:
        progress = _Drawn(bars)
        progress.phase(HOSTILE, 2)
        progress.step("[/y]" + HOSTILE)
        progress.say("[/z]" + HOSTILE)
    for words in ("\\x1b]0;owned", "[/x] [bold]b", "[/y]", "[/z]"):
        assert words in drawn.getvalue()
    assert "\x1b]0;owned" not in drawn.getvalue()


@pytest.mark.parametrize("option", ["--set", "--runs", "--\x1b[31mno"])
def test_an_argument_is_repeated_without_its_control_characters(loadframe: Command, option: str) -> None:
    done = loadframe("measure", "\x1b[31m[/x].toml", option, "\x1b[31m[/x]")
    assert done.code in (1, 2)
    assert "\x1b" not in done.err and "\\x1b[31m" in done.err


def test_an_answer_is_not_obeyed_and_what_is_ours_is_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A study's question is in it, and what a server says."""
    ours = api.case("job-queue").readme()
    terminal.answer(HOSTILE)
    terminal.answer(ours)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[31mred" in out
    assert out.endswith(f"\n{ours}\n")


def test_the_name_of_a_file_that_cannot_be_decoded(loadframe: Command) -> None:
    done = loadframe("curve", "\udcff.csv")
    assert (done.code, "\\udcff.csv" in done.err) == (1, True), done.err


# --- one object ---


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["measure", "nowhere.toml", "--json"], 1, "StudyError"),
        (["measure", "--json"], 2, "usage"),
        (["no-such-verb", "--json"], 2, "usage"),
        (["limits", "--set", "x=1", "--json"], 2, "usage"),
        (["limits", "--pid", "many", "--json"], 2, "usage"),
        (["case", "--json"], 2, "usage"),
    ],
)
def test_with_json_every_outcome_is_one_object(loadframe: Command, arguments: list[str], code: int, kind: str) -> None:
    done = loadframe(*arguments)
    assert (done.code, done.json["schema"], done.json["kind"]) == (code, "loadframe.error/1", kind)
    assert done.json["message"] and done.err


def test_what_is_no_finite_number_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.emit({"a": [float("nan"), (1.5, {"b": float("-inf")})], "c": "é\u2028"})
    line = capsys.readouterr().out
    assert line.splitlines() == [line.rstrip("\n")] and line.isascii()
    assert json.loads(line) == {"a": [None, [1.5, {"b": None}]], "c": "é\u2028"}


def test_after_the_answer_there_is_no_second_object(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.begin()
    terminal.emit({"schema": "an answer"})
    terminal.emit_error({"kind": "interrupted"})
    assert len(capsys.readouterr().out.splitlines()) == 1


# --- streams that take nothing ---


@pytest.mark.parametrize("place", ["/dev/full", None])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_answer_that_stdout_does_not_take_is_told(
    loadframe_in: Command, points: Path, place: str | None, options: list[str]
) -> None:
    done = loadframe_in("curve", str(points), *options, streams={"out": place})
    assert (done.code, done.err.startswith("Cannot write the answer to standard output: ")) == (1, True), done.err


@pytest.mark.long
def test_what_was_measured_is_kept_where_stdout_takes_nothing(loadframe_in: Command, study: Path) -> None:
    done = loadframe_in("measure", str(study), streams={"out": "/dev/full"})
    (run,) = (study.parent / "runs").iterdir()
    assert (done.code, f"`loadframe report runs/{run.name}`" in done.err) == (1, True), done.err
    assert (run / "steps.jsonl").read_text().count("\n") >= 4


@pytest.mark.long
def test_a_full_stderr_costs_nothing_but_the_exit_code(loadframe_in: Command, study: Path) -> None:
    done = loadframe_in("measure", str(study), "--json", streams={"err": "/dev/full"})
    assert (done.code, len(done.json["points"])) == (1, 2)


def test_a_closed_stderr_is_silence(loadframe_in: Command, points: Path) -> None:
    done = loadframe_in("curve", str(points), "--json", streams={"err": None, "in": None})
    assert (done.code, done.json["schema"]) == (0, "loadframe.curve/1")
    refused = loadframe_in("curve", "nowhere.csv", streams={"err": None, "in": None})
    assert (refused.code, refused.out) == (1, "")


def test_an_encoding_that_lacks_a_character_shows_it_escaped(loadframe_in: Command, tmp_path: Path) -> None:
    done = loadframe_in("curve", "größe.csv", encoding="ascii")
    assert (done.code, "gr\\xf6\\xdfe.csv" in done.err) == (1, True), done.err
    assert loadframe_in("case", "show", "oltp-ladder", encoding="ascii").code == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "verb", [["curve", "POINTS"], ["curve", "POINTS", "--json"], ["man"], ["--help"], ["report", "RUN", "--details"]]
)
def test_a_reader_that_leaves_ends_a_command_silently(points: Path, tmp_path: Path, verb: list[str]) -> None:
    run = shutil.copytree(RECORDED, tmp_path / "run")
    reading, writing = os.pipe()
    os.close(reading)
    program = str(Path(sys.executable).with_name("loadframe"))
    words = [{"POINTS": str(points), "RUN": str(run)}.get(word, word) for word in verb]
    done = subprocess.run([program, *words], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


# --- what nobody foresaw ---


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch, study: Path) -> None:
    """A mistake of ours at the second step."""
    take = RealBench.take_step

    def wrong(bench: RealBench, request: Any) -> Any:
        if bench.run.steps():
            raise ZeroDivisionError("of ours")
        return take(bench, request)

    monkeypatch.setattr(RealBench, "take_step", wrong)
    monkeypatch.chdir(study.parent)
    monkeypatch.setenv("LOADFRAME_STATE", str(study.parent / "state"))


@pytest.mark.long
@pytest.mark.usefixtures("fault")
def test_a_fault_of_ours_is_told_as_one_and_nothing_is_lost(study: Path) -> None:
    code, out, err = run("measure", str(study), "--json")
    document = json.loads(out)
    assert (code, document["kind"]) == (1, "Fault"), err
    assert "Loadframe has a bug: ZeroDivisionError: of ours" in err and "Traceback" not in err
    assert "1 finished step is kept in runs/" in err
    (kept,) = (study.parent / "state/faults").iterdir()
    assert str(kept) in document["remedy"]
    assert "ZeroDivisionError: of ours" in kept.read_text()
    assert not list((study.parent / "state/leases").glob("*.json"))


def test_a_fault_whose_traceback_cannot_be_kept_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADFRAME_STATE", "/proc/none")
    try:
        raise ZeroDivisionError("of ours")
    except ZeroDivisionError as error:
        told = faults.in_words(error)
    assert isinstance(told, Fault) and "Traceback" in str(told)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "ulimit -v"),
        (ImportError("x.so: failed to map segment from shared object"), "ulimit -v"),
        (OSError(24, "Too many open files", "/proc/x"), "ulimit -n"),
        (OSError(28, "No space left on device"), "Free some disk space"),
        (RuntimeError("can't start new thread"), "ulimit"),
    ],
)
def test_what_the_machine_lacks_is_no_fault_of_ours(error: Exception, words: str) -> None:
    told = faults.in_words(error)
    assert isinstance(told, MachineError) and words in str(told)


def test_what_is_said_in_words_already_stays_so() -> None:
    error = OutputError("full")
    assert faults.in_words(error) is error
