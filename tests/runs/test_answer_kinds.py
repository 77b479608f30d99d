"""A run that was made for what another distribution has is read, shown and written like ours."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import loadframe
from loadframe.cli.common import document
from loadframe.entry_points import ANSWERS_GROUP
from loadframe.errors import MissingTool, OutsideFault
from loadframe.experiments import answer_kinds
from outside_toy import install

RECORDED = Path(__file__).parents[1] / "data" / "runs"
POEM = """
from dataclasses import dataclass, replace

from loadframe.experiments.answer_kinds import KindOfAnswer
from loadframe.reporting.document import Document
from loadframe.reporting.reports import Form
from loadframe.runs.formats import Schema


@dataclass(frozen=True)
class Poem:
    lines: tuple[str, ...]
    run: str = ""
    reported: None = None


def shown(poem, about, went):
    return Document(kind="Poem", answer=poem.lines, sections=(), about=about, report=f"{poem.run}/report.html")


def shape(poem):
    return {"schema": "poem/1", "lines": poem.lines}


FORM = Form(shown, lambda poem: iter(()), shape, lambda poem: poem.lines[0])
KIND = KindOfAnswer(
    "poem", Poem, Schema("poem-record", (lambda body: {**body, "lines": [body.pop("line")]},)), FORM,
    lambda run, poem, end: replace(poem, run=end.run), lambda poem: {"poem.txt": "".join(poem.lines)},
)
"""


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs the poem with this source."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def made(source: str) -> None:
        (tmp_path / "lf_poem.py").write_text(source)
        install(tmp_path, "lf_poem", f"[{ANSWERS_GROUP}]\npoem = lf_poem:KIND\n")

    yield made
    sys.modules.pop("lf_poem", None)


@pytest.fixture
def of_a_poem(tmp_path: Path) -> Path:
    run = Path(shutil.copytree(RECORDED / "ladder", tmp_path / "run"))
    (run / "ladder.json").unlink()
    (run / "poem.json").write_text(json.dumps({"schema": "loadframe.poem-record/1", "line": "Load a little more."}))
    return run


def test_a_kind_of_answer_of_another_distribution_is_like_ours(
    registered: Callable[[str], None], of_a_poem: Path
) -> None:
    registered(POEM)
    run = loadframe.open_run(of_a_poem)
    case = loadframe.conclude(run)
    assert type(case.answer).__name__ == "Poem"
    assert (case.gain, case.answer and case.answer.run) == (None, str(of_a_poem))
    written = loadframe.write_answer(run, case)
    assert written == case.answer
    assert json.loads((of_a_poem / "poem.json").read_text())["schema"] == "loadframe.poem-record/2"
    assert (of_a_poem / "poem.txt").read_text() == "Load a little more."
    assert "Load a little more." in (of_a_poem / "report.html").read_text()
    assert loadframe.render_text(written).startswith("Load a little more.")
    assert "Load a little more." in loadframe.render_markdown(written)
    assert document(written) == {"schema": "poem/1", "lines": ("Load a little more.",)}


def test_one_that_cannot_be_used_is_named(registered: Callable[[str], None], of_a_poem: Path) -> None:
    registered("KIND = 3")
    with pytest.raises(OutsideFault, match=r"The kind of answer 'poem' of lf_poem 1\.5 is of type int"):
        loadframe.conclude(loadframe.open_run(of_a_poem))


def test_a_run_that_needs_an_extension_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_kinds, "registered", lambda *_: None)
    with pytest.raises(MissingTool, match=r"tuning\.json needs the extension loadframe-tune, which is not installed"):
        loadframe.conclude(loadframe.open_run(RECORDED / "tuning"))
