"""config.ini is read as the management server reads it, and written as it was read."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadframe_ndb.config import KINDS, read_config

NAMES = st.text(string.ascii_letters, min_size=1, max_size=8)
VALUES = st.text(string.ascii_letters + string.digits + "=:[]{},;/.-\"'", min_size=1, max_size=8)
SECTIONS = st.lists(
    st.tuples(
        st.sampled_from(sorted(KINDS)),
        st.lists(st.tuples(NAMES, VALUES), max_size=3, unique_by=lambda entry: entry[0].lower()),
    ),
    min_size=1,
    max_size=4,
)
NOISE = st.sampled_from(["", "# a comment = none", "   ", "\t# [ndbd]"])


@given(st.text())
@example("[ndbd]\r\nNodeId=1\r\n")
@example('[ndbd default]\nDataMemory: 1G # much\n"\n[')
def test_any_text_can_be_read_and_is_written_as_it_was(text: str) -> None:
    config = read_config(text)
    assert config.text == text
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in config.problems)


@given(SECTIONS, st.sampled_from(["=", ":", " = ", "\t:"]), NOISE, st.sampled_from(["\n", "\r\n", "  \n"]))
def test_what_was_written_is_read(
    sections: list[tuple[str, list[tuple[str, str]]]], separator: str, noise: str, ending: str
) -> None:
    lines = [noise]
    for kind, entries in sections:
        lines += [f"[{kind.upper()}]", *(f"{name}{separator}{value} # {kind}" for name, value in entries), noise]
    config = read_config(ending.join(lines))
    assert not config.problems
    read = [(one.kind, [(entry.name, entry.value) for entry in one.entries]) for one in config.sections]
    assert read == [(KINDS[kind], entries) for kind, entries in sections]
    for section in config.sections:
        for entry in section.entries:
            assert lines[entry.line - 1].startswith(entry.name)


@given(SECTIONS, NAMES, VALUES, st.sampled_from(["\n", "\r\n"]))
def test_a_change_is_read_back_and_leaves_all_other_lines(
    sections: list[tuple[str, list[tuple[str, str]]]], name: str, value: str, ending: str
) -> None:
    lines: list[str] = []
    for kind, entries in sections:
        lines += [f"[{kind}]", *(f"{entry} = {old}\t# kept" for entry, old in entries)]
    before = read_config(ending.join([*lines, ""]))
    heading = sections[0][0]
    after = before.changed(heading, name, value)
    changed = after.of_kind(KINDS[heading])
    assert len(after.sections) == len(before.sections)
    for section in changed:
        entry = section.get(name)
        assert entry is not None and entry.value == value
    assert after.changed(heading, name, value) == after
    touched = {entry.line - 1 for section in changed if (entry := section.get(name))}
    others = [line for at, line in enumerate(after.text.split(ending)) if at not in touched]
    was = {entry.line - 1 for one in before.of_kind(KINDS[heading]) if (entry := one.get(name))}
    assert others == [line for at, line in enumerate(before.text.split(ending)) if at not in was]
    assert after.text.count("# kept") == before.text.count("# kept")


def test_a_default_section_that_is_not_there_is_made_first() -> None:
    config = read_config("[ndbd]\n[mysqld]").changed("ndbd default", "DataMemory", "1G")
    assert config.text == "[ndbd default]\nDataMemory=1G\n\n[ndbd]\n[mysqld]"
    assert not config.problems


@pytest.mark.parametrize(
    ("heading", "name", "value", "words"),
    [
        ("ndbdd", "DataMemory", "1G", "no section"),
        ("tcp", "Checksum", "1", "no section [tcp]"),
        ("ndbd", "DataMemory", "", "not a setting"),
        ("ndbd", "DataMemory", "1G # much", "not a setting"),
        ("ndbd", "DataMemory", "1G\n[mysqld]", "not a setting"),
        ("ndbd", "[mysqld]", "1", "not a setting"),
    ],
)
def test_a_change_that_the_file_cannot_hold_is_refused(heading: str, name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        read_config("[ndbd]\n").changed(heading, name, value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("NodeId=1\n[ndbd]", 1, "before any section"),
        ("[ndbd]\n\nDataMemory 1G", 3, "neither a heading nor a setting"),
        ("[ndbd] # the first", 1, "comment follows the heading"),
        ("[ndbd]\n[ndbdd]", 2, "not a heading"),
        ("[ndbd defaults]", 1, "not a heading"),
        ("[ndbd", 1, "not a heading"),
        ("[ndbd]\nDataMemory=1G\ndatamemory=2G", 3, "second time (first: line 2)"),
        ("[ndbd default]\n[NDBD DEFAULT]", 2, "second time (first: line 1)"),
        ("[mysqld]\n[api default]", 2, "comes after the [mysqld] of line 1"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int, words: str) -> None:
    (problem,) = read_config(text).problems
    assert problem.line == line
    assert words in problem.fact
    assert problem.remedy


@pytest.mark.parametrize(("written", "kind"), [("[ndbd] # first", "ndbd"), ("[mysqldd]", "mysqld"), ("[api", "mysqld")])
def test_a_broken_heading_is_taken_for_what_it_seems_to_mean(written: str, kind: str) -> None:
    (section,) = read_config(f"{written}\nHostName=a").sections
    assert (section.kind, section.entries[0].value) == (kind, "a")


def test_below_a_heading_that_means_nothing_no_line_is_taken_for_another_section() -> None:
    config = read_config("[ndbd]\n[warehouse]\nNodeId=7")
    assert [problem.line for problem in config.problems] == [2]
    assert config.sections[0].entries == []
