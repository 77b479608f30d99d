"""Collapsed stacks survive being written and read, and a damaged file gives what is left of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadframe.model import Stack
from loadframe.recording.profiles.profiler import collapse, parse_stacks, render_stacks

FRAMES = st.lists(st.text(max_size=20), min_size=1, max_size=8).map(tuple)


def test_equal_stacks_are_counted_and_the_format_is_that_of_the_tools() -> None:
    stacks = collapse([("a", "b"), ("a",), ("a", "b")])
    assert render_stacks(stacks) == "a;b 2\na 1\n"


def test_a_name_cannot_break_the_line() -> None:
    (stack,) = collapse([("Ljava/lang/String;", "x\ny", "")])
    assert stack.frames == ("Ljava/lang/String:", "x?y", "[unknown]")


@given(st.lists(FRAMES, max_size=20))
def test_what_is_written_is_read_back(samples: list[tuple[str, ...]]) -> None:
    stacks = collapse(samples)
    found = parse_stacks(render_stacks(stacks))
    assert found.damaged == 0
    assert found.stacks == stacks
    assert sum(stack.count for stack in found.stacks) == len(samples)


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = parse_stacks(text)
    assert all(stack.count > 0 and stack.frames for stack in found.stacks)


def test_damaged_lines_are_left_out_and_counted() -> None:
    found = parse_stacks("a;b 3\na;c\nd 0\ne -1\nf 1e3\n\ufffd\ufffd 2\ng\x00h 1\na;b 4\ntorn;off 1")
    assert Stack(("a", "b"), 7) in found.stacks
    assert Stack(("torn", "off"), 1) in found.stacks
    assert found.damaged == 5
