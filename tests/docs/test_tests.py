"""What a test may replace: what has a public name. Private names move with the code, and a clock is an argument. And
how it waits: with a deadline."""

from __future__ import annotations

import ast
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ending import ended_where_it_fails
from forked import forked
from sources import ROOT, TESTS

REPLACES = ("setattr", "delattr", "setitem", "patch", "object")
IN_A_COMMAND = re.compile(r"^\s*(?!self\.)\w+(?:\.\w+)*\.(?:_[a-z]\w*|monotonic) = ", re.M)
"""A line of Python that a test hands to another process."""


def private(name: str) -> bool:
    """Whether the last part of a name, or of the path to one, is nobody else's; and the clock that all share."""
    last = name.rpartition(".")[2]
    return (last.startswith("_") and not last.startswith("__")) or last == "monotonic"


def replaced(text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of each private name, or clock, that Python text replaces in somebody else's module or object."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in REPLACES:
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str) and private(given.value):
                    yield node.lineno, given.value
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                of_another = isinstance(target, ast.Attribute) and ast.unparse(target.value) not in ("self", "cls")
                if isinstance(target, ast.Attribute) and of_another and private(target.attr):
                    yield node.lineno, ast.unparse(target)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, found.group().strip()) for found in IN_A_COMMAND.finditer(node.value))


def modules() -> Iterator[Path]:
    return (path for folder in TESTS for path in sorted(folder.rglob("*.py")))


@pytest.mark.long
def test_no_test_replaces_a_private_name_or_the_clock() -> None:
    found = {path.name: list(replaced(path.read_text())) for path in modules() if path != Path(__file__)}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('monkeypatch.setattr(module, "_silent", None)', "_silent"),
        ('monkeypatch.setattr("room.module._silent", None)', "room.module._silent"),
        ('monkeypatch.setattr(time, "monotonic", clock)', "monotonic"),
        ('monkeypatch.setattr("room.module.time.monotonic", clock)', "room.module.time.monotonic"),
        ('patch.object(module, "_silent")', "_silent"),
        ("module._silent = None", "module._silent"),
        ('run(f"import module\\nmodule._silent = None\\n")', "module._silent ="),
        ('monkeypatch.setattr(module, "SILENT_S", 0.1)', ""),
        ('monkeypatch.setattr(module, "__file__", "x")', ""),
        ("self._silent = None", ""),
        ("began = time.monotonic()", ""),
    ],
)
def test_what_is_found(code: str, name: str) -> None:
    assert [each for _, each in replaced(code)] == ([name] if name else [])


WAITS = ("sleep", "wait", "select", "flush")


def only_waits(text: str) -> Iterator[int]:
    """The line of each loop that does nothing but wait for its condition; one until a time alone has its deadline."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.While) and not ast.unparse(node.test).startswith("time.monotonic() <"):
            called = [
                getattr(each.value.func, "attr", "")
                for each in node.body
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
            ]
            others = [each for each in node.body if not isinstance(each, ast.Pass | ast.Continue | ast.Assert)]
            if len(called) == len(others) and set(called) <= set(WAITS):
                yield node.lineno


@pytest.mark.long
def test_what_is_waited_for_has_a_deadline() -> None:
    """waiting.await_that, which then says what was seen. A command of its own is ended by the test that started it."""
    paths = [path for path in modules() if path.name not in ("waiting.py", "follow.py")]
    found = {str(path.relative_to(ROOT)): list(only_waits(path.read_text())) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("while not ready(): pass", True),
        ("while not ready():\n    assert process.poll() is None\n    time.sleep(0.1)", True),
        ("while not ready() and time.monotonic() < until:\n    time.sleep(0.1)", True),
        ("while time.monotonic() < until:\n    assert process.poll() is None", False),
        ("while line := file.readline():\n    lines.append(line)", False),
    ],
)
def test_which_loops_only_wait(code: str, waits: bool) -> None:
    assert bool(list(only_waits(code))) == waits


def test_a_process_that_a_failed_test_holds_ends_with_its_block() -> None:
    """Popen would wait for its end, and the time limit of pytest has struck already."""
    with pytest.raises(KeyError), subprocess.Popen(["sleep", "1000"]) as process:
        raise KeyError
    assert process.returncode == -9


def test_what_a_test_has_started_ends_where_it_fails() -> None:
    with pytest.raises(AssertionError, match="it failed"), ended_where_it_fails():
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)
        raise AssertionError("it failed")
    assert process.returncode == -signal.SIGKILL
    assert process.stdin is not None and process.stdin.closed


@pytest.mark.long
def test_a_command_that_a_test_did_not_wait_for_answers_no_other(
    forking: subprocess.Popen[str], tmp_path: Path
) -> None:
    """As one that the time limit of pytest has ended."""
    left = {"number": -1, "arguments": ["no-verb"], "said": str(tmp_path), "environment": {}, "folder": str(tmp_path)}
    print(json.dumps(left), file=forking.stdin, flush=True)
    assert forked(forking, ["--help"], folder=str(tmp_path), said=str(tmp_path)).code == 0
