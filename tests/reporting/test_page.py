"""The page is one file that a stranger can read: whole, offline, needing no script, safe with any user's text."""

from __future__ import annotations

import errno
import html
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from loadframe.errors import RunError
from loadframe.model import Change, Forecast, Investigation, SettingValue
from loadframe.reporting import answers, change_words, facts, verdict_words, words
from loadframe.reporting.next_step import next_step
from loadframe.reporting.reports import render_page, render_text, write_page

VOID = {"meta", "br", "link", "img", "hr", "input", "rect", "path", "line", "circle"}
NOT_A_VALUE = re.compile(r"\b(None|nan|NaN|inf|Infinity|Undefined)\b")


class Reader(HTMLParser):
    """What a browser would fetch, run and show."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.shown: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.handlers += [name for name in values if name.startswith("on")]
        if tag == "script":
            self.scripts.append(values)
        if values.get("id"):
            self.ids.append(values["id"] or "")
        for name in ("src", "href", "xlink:href", "srcset", "poster", "data", "action"):
            target = values.get(name)
            if target and tag != "a":
                self.fetched.append(target)
            elif target:
                self.links.append(target)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if not {"script", "style", "title"} & set(self.open):
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())


def test_the_page_is_well_formed_and_fetches_nothing(page: str) -> None:
    reader = Reader(page)
    assert reader.open == []
    assert [target for target in reader.fetched if not target.startswith("#")] == []
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(['\"]?([^)'\"]*)", page))


def test_no_script_is_needed_to_read_it(page: str) -> None:
    reader = Reader(page)
    assert all(
        script.get("type") == "application/json" or script.get("id") in ("flame-zoom", "figure-files", "settings-copy")
        for script in reader.scripts
    )
    assert reader.handlers == []


def test_the_answer_comes_first_and_the_next_step_is_there(investigation: Investigation, page: str) -> None:
    text, action = Reader(page).text.casefold(), next_step(investigation).action.casefold()
    question, answer = investigation.study.question.casefold(), answers.answer(investigation).casefold()
    assert text.index(question) < text.index(answer) < text.index(action)
    assert text.index(answer) < 400
    if answers.next_line(investigation).casefold() == f"next: {action}":
        assert text.count(action) == 1, "no box says it again"


def test_text_and_page_say_the_same(investigation: Investigation, page: str) -> None:
    """Every sentence of the text that carries a claim stands in the page as well."""
    text = Reader(page).text
    flat = " ".join(render_text(investigation, details=True).split())
    sentences = [*answers.lines(investigation), answers.next_line(investigation), next_step(investigation).action]
    unit = investigation.study.load_unit
    sentences += [
        words.state_sentence(one, unit, curve=investigation.rounds[-1 if one is investigation.after else 0].curve)
        for one in (investigation.before, investigation.after)
        if one
    ]
    sentences += [verdict_words.proof_sentence(investigation.gain, unit)] if investigation.gain else []
    sentences += [words.sentence(text) for text in change_words.durability_sentences(investigation)]
    for said in sentences:
        assert said.casefold() in text.casefold()
        assert " ".join(said.split()).casefold() in flat.casefold()
    for round_ in investigation.rounds:
        assert all(words.sentence(cut) in text and words.sentence(cut) in flat for cut in round_.clamped)


def test_a_missing_part_leaves_no_trace(investigation: Investigation, page: str) -> None:
    for shown in (Reader(page).text, render_text(investigation, details=True)):
        found = NOT_A_VALUE.search(shown)
        assert not found, shown[max(0, found.start() - 60) : found.end() + 60]
        assert "()" not in shown


def test_no_section_is_empty(page: str) -> None:
    for section in re.findall(r"<section[^>]*>(.*?)</section>", page, flags=re.S):
        content = re.sub(r"<h2>.*?</h2>|<script.*?</script>|<[^>]+>", " ", section, flags=re.S)
        assert content.strip(), section


def test_every_link_has_its_target(page: str) -> None:
    reader = Reader(page)
    assert all(link[1:] in reader.ids for link in reader.links if link.startswith("#"))
    files = {link for link in reader.links if not link.startswith("#")}
    written = (Path(__file__).parents[2] / "docs/run-folder.md").read_text()
    assert all(f"`{file}`" in written for file in files), "only to files that a run folder has"
    assert len(reader.ids) == len(set(reader.ids))


def test_evidence_is_linked_to_the_data_it_comes_from(farm: Investigation) -> None:
    reader = Reader(render_page(farm))
    assert {"#data-1", "#data-1-20", "#data-2-320"} <= set(reader.links)


def test_user_text_cannot_become_markup(farm: Investigation) -> None:
    attack = '<script>alert("x")</script>'
    study = replace(
        farm.study, question=attack, name=attack, story=attack, cage={attack: attack}, axis_unit="</script>" + attack
    )
    finding = replace(farm.rounds[0].findings[0], title=attack)
    trial = farm.rounds[0].tried[0]
    trial = replace(trial, note=attack, remedy=replace(trial.remedy, title=attack))
    first = replace(farm.rounds[0], findings=(finding,), tried=(trial,), treatment=attack)
    page = render_page(replace(farm, study=study, rounds=(first, farm.rounds[1]), run=attack))
    assert "<script>" not in page
    assert html.escape(attack, quote=True).replace("&quot;", "&#34;") in page
    scripts = Reader(page).scripts
    assert all(
        script.get("type") == "application/json" or script.get("id") in ("figure-files", "settings-copy")
        for script in scripts
    )
    specs = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.S)
    assert any("alert" in spec for spec in specs)
    assert not any("<" in spec or ">" in spec for spec in specs)


def test_the_charts_can_be_taken_from_the_page(farm: Investigation) -> None:
    page = render_page(farm)
    specs = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, flags=re.S)
    assert len(specs) >= 5
    assert all(json.loads(spec)["layer"] for spec in specs)


def test_configured_and_effective_are_told_apart(farm: Investigation) -> None:
    text = Reader(render_page(farm)).text
    assert "clamped" in text
    assert "# in effect: 431" in text
    assert "already enough" in text


@pytest.mark.parametrize(
    ("asked", "granted", "cut"), [(3651, 20000, False), (2000, 431, True), ("WAL", "delete", True)]
)
def test_only_less_than_was_asked_for_is_a_cut(asked: SettingValue, granted: SettingValue, cut: bool) -> None:
    change = Change("server", "a", 1, asked)
    assert facts.was_cut(change, {"a": granted}) is cut
    assert not facts.was_cut(change, {})


def test_every_kind_of_request_is_told_before_and_after(farm: Investigation) -> None:
    rows = re.findall(r"<tr>(?:<td[^>]*>[^<]*</td>){4}</tr>", render_page(farm))
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    assert ["80", "list", "41.2 s", "12.3 s"] in cells
    assert ["10", "list", "61 ms", "60 ms"] in cells


def test_durability_kept_and_relaxed_stand_side_by_side(queue: Investigation) -> None:
    text = Reader(render_page(queue)).text
    assert "With durability kept: 5.7 times" in text
    assert "With durability relaxed: 32 times" in text
    assert "the last commits may be lost when the machine loses power" in text


def test_the_page_replaces_an_older_one_as_a_whole(farm: Investigation, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")
    write_page(farm, path)
    assert path.read_text(encoding="utf-8") == render_page(farm)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_full_disk_leaves_the_older_page_and_says_what_to_do(
    examples: dict[str, Investigation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device") as raised:
        write_page(examples["bare"], path)
    assert "loadframe report" in str(raised.value)
    assert path.read_text() == "older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_is_not_there_is_named(examples: dict[str, Investigation], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere"):
        write_page(examples["bare"], tmp_path / "nowhere" / "report.html")


def test_a_forecast_stands_beside_what_came_of_it(foretold: Investigation) -> None:
    page = render_page(foretold)
    said = " ".join(page.split())
    assert "Forecast and outcome" in said
    assert "loader.cpu saturates first" in said
    assert "saturated at 12.5 jobs" in said or "saturated at 12.5" in said
    assert said.count(">outside<") == 1
    assert "Forecast and outcome" not in render_page(replace(foretold, forecast=None))


@pytest.mark.long
def test_throughput_is_counted_in_what_the_workload_does(farm: Investigation, foretold: Investigation) -> None:
    """In the page, the text and their charts alike, and in requests where a workload does not say."""
    for one in (farm, foretold):
        assert "requests/s" in render_page(one) and "requests/s" in render_text(one, details=True)
        counted = replace(one, study=replace(one.study, work_unit="entries"))
        for told in (render_page(counted), render_text(counted, details=True)):
            assert "entries/s" in told
            assert not re.search("requests(/s| per second)", told, re.IGNORECASE)


def test_a_refused_forecast_says_why_and_draws_nothing(foretold: Investigation) -> None:
    refused = Forecast("runs/farm", "active_jobs", "closed", (5, 10), refused="No resource rises.")
    page = render_page(replace(foretold, forecast=refused))
    assert "No forecast. No resource rises." in page
    assert "chart-forecast" not in page
