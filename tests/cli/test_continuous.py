"""`loadframe compare --github --junit`: what GitHub's runner and the readers of JUnit XML make of it."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml
from typer.testing import CliRunner

from loadframe.cli.main import app
from loadframe.model import Answer, Comparison, Margin, Verdict
from loadframe.reporting.comparison_report import NOT_XML, github_annotations, github_summary, junit_xml

VERDICT = Verdict(0.8, 0.7, 0.9, "worse", 5, "median ratio of 5 blocks")
COMPARED = Comparison("as given", "wal", verdict=VERDICT, notes=("measured on a busy machine",))
OUTCOMES: dict[Answer, tuple[str, str]] = {
    "proven-worse": ("error", "Failure"),
    "cannot-tell": ("warning", "Skipped"),
    "proven-not-worse": ("notice", ""),
}


def with_answer(answer: Answer | None) -> Comparison:
    return replace(COMPARED, margin=None if answer is None else Margin(0.03, answer))


def runner_reads(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as GitHub's runner decodes it: its name, properties and message."""
    found = re.fullmatch(r"::(\w+)(?: (.*?))?::(.*)", line, re.S)
    assert found is not None, line
    properties = dict(pair.split("=", 1) for pair in (found[2] or "").split(","))
    return found[1], {name: decoded(value) for name, value in properties.items()}, decoded(found[3])


def decoded(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


# --- GitHub ---


@pytest.mark.parametrize("answer", OUTCOMES)
def test_an_annotation_is_as_grave_as_the_answer(answer: Answer) -> None:
    (line,) = github_annotations([with_answer(answer)])
    level, properties, message = runner_reads(line)
    assert level == OUTCOMES[answer][0]
    assert properties == {"title": "Loadframe: wal against as given"}
    assert message.startswith("wal against as given: worse. 0.8 times the throughput")


def test_what_is_worse_and_was_not_asked_for_is_a_warning() -> None:
    assert runner_reads(github_annotations([with_answer(None)])[0])[0] == "warning"
    better = replace(COMPARED, verdict=replace(VERDICT, decision="better"))
    assert runner_reads(github_annotations([better])[0])[0] == "notice"


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(NAMES)
def test_a_name_is_never_a_command_nor_markup(name: str) -> None:
    compared = replace(COMPARED, after=name, notes=(name,))
    (line,) = github_annotations([compared])
    assert len(line.splitlines()) == 1
    level, properties, _ = runner_reads(line)
    assert (level, set(properties)) == ("warning", {"title"})
    page = github_summary([compared])
    (row,) = [line for line in page.splitlines() if line.startswith("| ") and "| worse |" in line]
    assert row.count("|") == 6
    assert re.findall(r"</?([a-z]+)>", page) == ["details", "summary", "summary", "details"]


def test_the_summary_shows_the_name_as_it_is() -> None:
    page = github_summary([replace(COMPARED, after="a|b <c> *d* `e`")])
    (row,) = [line for line in page.splitlines() if "| worse |" in line]
    cell = row.split(" | ")[0]
    assert html.unescape(cell) == "| a|b <c> *d* `e` against as given"


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, level in (("a.csv", 100), ("b.csv", 50)):
        (tmp_path / name).write_text("\n".join(["value", *(f"{level + at % 5}" for at in range(40))]))
    return tmp_path


def test_the_summary_is_appended_and_the_exit_code_stays(samples: Path) -> None:
    (samples / "summary.md").write_text("of another step\n")
    arguments = ["compare", "a.csv", "b.csv", "--fail-if-worse", "3%", "--github", "--junit", "junit.xml"]
    done = CliRunner().invoke(app, arguments, env={"GITHUB_STEP_SUMMARY": str(samples / "summary.md")})
    assert done.exit_code == 3
    text = (samples / "summary.md").read_text()
    assert text.startswith("of another step\n### Loadframe: compare")
    assert "| worse |" in text
    first, *_, last = done.stdout.rstrip("\n").splitlines()
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert len(token) == 32
    assert done.stderr.splitlines()[-1].startswith("::error title=Loadframe%3A b.csv against a.csv::")
    assert JUnitXml.fromfile(str(samples / "junit.xml")).failures == 1


def test_without_github_it_says_what_is_missing_before_it_measures(samples: Path) -> None:
    done = CliRunner().invoke(app, ["compare", "a.csv", "b.csv", "--github"], env={"GITHUB_STEP_SUMMARY": ""})
    assert done.exit_code == 1
    assert "GITHUB_STEP_SUMMARY" in done.stderr
    assert done.stdout == ""
    done = CliRunner().invoke(app, ["compare", "a.csv", "b.csv", "--junit", "nowhere/x.xml"])
    assert "there is no folder nowhere" in done.stderr


# --- JUnit ---


@pytest.mark.parametrize("answer", [*OUTCOMES, None])
def test_the_readers_of_junit_find_one_test_for_each_comparison(answer: Answer | None) -> None:
    document = JUnitXml.fromstring(junit_xml([with_answer(answer), with_answer("proven-not-worse")]))
    (suite,) = document
    first, second = suite
    kinds = [type(result).__name__ for result in first.result]
    wanted = OUTCOMES[answer][1] if answer is not None else ""
    assert kinds == ([wanted] if wanted else [])
    assert second.is_passed
    assert (suite.tests, suite.failures, suite.skipped) == (2, kinds.count("Failure"), kinds.count("Skipped"))
    assert first.name == "wal against as given"
    assert "measured on a busy machine" in first.system_out
    if wanted:
        assert first.result[0].message.startswith("wal against as given: worse.")


@given(NAMES)
def test_a_name_never_breaks_the_xml(name: str) -> None:
    root = ElementTree.fromstring(junit_xml([replace(with_answer("proven-worse"), after=name)]))
    case = root.find("testsuite/testcase")
    assert case is not None
    told = NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), name)
    assert case.get("name") == f"{told} against as given"
