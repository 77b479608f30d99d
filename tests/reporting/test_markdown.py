"""A report in Markdown, as a reader of GitHub's Markdown (markdown-it) sees it."""

import html
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

import loadframe
from loadframe.model import Change
from loadframe.reporting import document as doc
from loadframe.reporting.markdown import render

DATA = Path(__file__).parents[1] / "data"
RECORDED, GOLDEN = DATA / "runs", DATA / "reports"
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ZERO_WIDTH = "\u200b"
OURS = {"details", "summary", "code"}
"""Elements that a report may have."""


def tokens(page: str) -> list[Token]:
    return [child for token in READER.parse(page) for child in (token, *(token.children or ()))]


def words_of(page: str) -> str:
    """The text that is seen, without blanks."""
    shown = "".join(
        token.content for token in tokens(page) if token.type in ("text", "code_inline", "fence", "text_special")
    )
    return re.sub(r"\s", "", html.unescape(shown).replace(ZERO_WIDTH, ""))


WRITTEN = st.text(
    st.sampled_from("ab1 _*`|\\<>[]()!#@~&$:/.-+=\n\t\"'") | st.characters(exclude_categories=["Cs", "Cc"]), max_size=30
)


@given(WRITTEN)
@example("<script>alert(1)</script>")
@example("[click](javascript:alert(1))")
@example("| a | b |\n|---|---|\n")
@example("``` \n# heading")
@example("a\\|b`c\\")
@example("1. x")
@example("- - -")
def test_what_others_wrote_is_text_wherever_it_stands(name: str) -> None:
    """A heading, a paragraph, items, tables with words and code, facts, commands and settings are what they are for a
    harmless name."""
    document = doc.Document(
        "Report",
        (f"Of {name}",),
        (
            doc.Section(
                f"of {name}",
                "one",
                (
                    doc.Prose((f"{name} and ", doc.Span(name, "code"), ".")),
                    doc.Prose(name),
                    doc.Items((name, (doc.Span(name, "code"),))),
                    doc.Table(("Name", f"n {name}"), ((name, doc.Span(name, "code")),)),
                    doc.Facts(((f"f {name}", name),)),
                    doc.Diff((Change("server", f"s {name}", name, name),)),
                    doc.Settings((name, "x = 1")),
                    doc.Group((doc.Prose("inside"),), heading=f"g {name}"),
                    doc.Group((doc.Prose("inside"),), summary=f"g {name}"),
                ),
            ),
        ),
        asides=(doc.Aside(f"a {name}", (name, name)),),
    )
    page = render(document)
    harmless = render(replaced(document, name))
    kinds = [token.type for token in READER.parse(page) if token.type != "inline"]
    empty = [kind for kind in kinds if kind.startswith("paragraph")]
    plain = [token.type for token in READER.parse(harmless) if token.type != "inline"]
    if name.strip():
        assert kinds == plain, empty
    assert not {token.type for token in tokens(page)} & {"link_open", "image", "em_open", "s_open", "hr"}
    elements = {tag for token in tokens(page) if "html" in token.type for tag in re.findall(r"</?(\w+)", token.content)}
    assert elements <= OURS
    assert words_of(page).count(re.sub(r"\s", "", name.replace(ZERO_WIDTH, ""))) >= 15


def replaced(document: doc.Document, name: str) -> doc.Document:
    """The same of a harmless name."""

    def plain(value: object) -> object:
        if isinstance(value, str):
            return value.replace(name, "name") if name else value
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        if hasattr(value, "__dataclass_fields__"):
            fields = {field: plain(getattr(value, field)) for field in value.__dataclass_fields__}
            return type(value)(**fields)
        return value

    made = plain(document)
    assert isinstance(made, doc.Document)
    return made


@pytest.mark.parametrize("name", ["@someone", "#12", "http://evil.example", "www.evil.example", ":x:`@someone` #3"])
def test_no_one_is_mentioned_and_nothing_becomes_a_link(name: str) -> None:
    """GitHub looks for these in what its reader has left as text, or in the raw line."""
    page = render(doc.Document("Report", (name,), ()))
    assert not re.search(r"@\w|(?<!&)#\d|://|www\.", page)
    assert words_of(page) == name.replace(" ", "")


def test_a_fence_is_longer_than_any_within() -> None:
    page = render(
        doc.Document(
            "",
            (),
            (
                doc.Section(
                    "s",
                    "settings",
                    (
                        doc.Settings(
                            ("```", "x"),
                        ),
                    ),
                ),
            ),
        )
    )
    (fence,) = (token for token in tokens(page) if token.type == "fence")
    assert fence.content == "```\nx\n"


@pytest.mark.parametrize("name", ["job-queue", "ladder"])
def test_the_report_of_a_run_is_the_one_that_was_looked_at(name: str) -> None:
    """UPDATE_GOLDEN=1 writes it anew."""
    case = loadframe.conclude(loadframe.open_run(RECORDED / name))
    assert case.answer is not None
    page = loadframe.render_markdown(case.answer).replace(str(RECORDED), "runs")
    golden = GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(page)
    assert page == golden.read_text()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=pytest.mark.extension("loadframe_tune")) if path.name == "tuning" else path.name
        for path in sorted(RECORDED.iterdir())
    ],
)
def test_a_whole_report_fits_an_issue(name: str) -> None:
    """GitHub takes 65,536 characters."""
    answer = loadframe.conclude(loadframe.open_run(RECORDED / name)).answer
    assert answer is not None
    brief, whole = (loadframe.render_markdown(answer, details=every) for every in (False, True))
    assert len(brief) <= len(whole) < 65_536
    assert "### Reproduce" in brief
