"""A slice of benchmarks/fuzz.py: the same inputs every time, and that it sees what it looks for."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuzz
from fuzz import Tally, items_of
from fuzzing import worker
from fuzzing.surfaces import Input

INPUTS = 300
SLOW = ("peer",)
"""They wait for timeouts: the benchmark asks them."""
ORDER = {"share": 0.0, "confine": True, "keep": False}
PATIENCE_S = 120.0
"""Others use the machine."""


@pytest.mark.long
def test_hostile_inputs_are_answered_or_refused_in_words() -> None:
    chosen = [item for item in items_of(INPUTS, seed=20_000) if item[0] not in SLOW]
    tally = fuzz.fuzz(chosen, ORDER, workers=1, hang_s=PATIENCE_S)
    assert not tally.failed, list(tally.faults.values())
    assert sum(row.inputs + row.skipped for row in tally.rows.values()) == len(chosen)
    assert sum(row.accepted for row in tally.rows.values()) > INPUTS / 40, "most are refused at once: a poor mutation"


@pytest.mark.long
@pytest.mark.parametrize(("surface", "inputs"), [("fleet", 60), ("wire", 12)])
def test_a_fleet_file_and_what_comes_over_the_wire_are_used_or_refused_in_words(surface: str, inputs: int) -> None:
    """Both are a stranger's, or a damaged host's; of all inputs they are few."""
    tally = fuzz.fuzz([(surface, seed) for seed in range(20_000, 20_000 + inputs)], ORDER, workers=1, hang_s=PATIENCE_S)
    assert not tally.failed, list(tally.faults.values())
    assert tally.rows[surface].inputs == inputs and tally.rows[surface].accepted > 0


PLANTED = """
import os, time
from fuzzing.surfaces import Input, Surface

def raises(folder):
    raise KeyError("planted")

def surface(call):
    return Surface(lambda rng, folder, corpus: Input(call=call), 0.1)

SURFACES = {
    "fine": surface(lambda folder: None),
    "raises": surface(raises),
    "hangs": surface(lambda folder: time.sleep(600)),
    "leaves": surface(lambda folder: os._exit(7)),
}
"""


@pytest.mark.long
def test_a_traceback_a_hang_and_an_odd_exit_are_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    items = [("fine", 1), ("raises", 2), ("leaves", 3), ("fine", 4), ("hangs", 5), ("fine", 6), ("raises", 7)]
    order = {**ORDER, "confine": False, "also": str(tmp_path / "planted.py")}
    tally = fuzz.fuzz(items, order, workers=1, hang_s=2.0)
    found = {fault.surface: (fault.failure, fault.seed, fault.count) for fault in tally.faults.values()}
    assert found == {"raises": ("traceback", 2, 2), "leaves": ("exit", 3, 1), "hangs": ("hang", 5, 1)}
    assert tally.rows["fine"].inputs == tally.rows["fine"].accepted == 3
    assert "KeyError" in next(fault.what for fault in tally.faults.values() if fault.surface == "raises")


JSON = Input(("curve", "x", "--json"), check=lambda answer: "" if answer["points"] else "no points")


@pytest.mark.parametrize(
    ("code", "out", "err", "failure", "what"),
    [
        (0, '{"schema": "loadframe.curve/1", "points": [1]}\n', "", "", ""),
        (1, '{"schema": "loadframe.error/1", "message": "no"}\n', "no", "", ""),
        (2, "", "Usage: loadframe", "", ""),
        (5, "", "no", "exit", "status 5"),
        (-11, "", "", "exit", "status -11"),
        (1, "", "Traceback (most recent call last):\n  File x\nKeyError: 'a'", "traceback", "KeyError"),
        (1, "", "Loadframe has a bug: KeyError: 'a' (x.py, line 1)", "traceback", "x.py, line 1"),
        (0, "{}", "x/src/loadframe/a.py:3: RuntimeWarning: overflow", "traceback", "RuntimeWarning"),
        (1, "", "", "answer", "without a word"),
        (1, "", "no \x1b[2J", "answer", "U+001B"),
        (1, "", "a" * 30_000, "answer", "20,000"),
        (0, "", "", "answer", "0 lines"),
        (0, '{"schema": "loadframe.curve/1", "points": [NaN]}\n', "", "answer", "not finite"),
        (0, '{"schema": "loadframe.curve/1", "points": [1e999]}\n', "", "answer", "not finite"),
        (0, '{"schema": "loadframe.curve/1", "points": []}\n', "", "answer", "no points"),
        (0, '{"schema": "loadframe.curve/1"}\n', "", "answer", "shape"),
        (0, '{"schema": "loadframe.error/1", "message": "no"}\n', "", "answer", "exit 0"),
        (0, "{\n", "", "answer", "no JSON"),
    ],
)
def test_how_an_answer_is_judged(code: int, out: str, err: str, failure: str, what: str) -> None:
    found, told, _ = worker._judged(JSON, code, out, err, None)
    assert found == failure, told
    assert what in told


def test_an_exception_that_leaves_the_command_is_a_traceback() -> None:
    assert worker._judged(JSON, 0, "", "", ValueError("x"))[0] == "traceback"


def test_the_same_seed_makes_the_same_input(tmp_path: Path) -> None:
    import random

    from fuzzing import corpus, surfaces

    given = corpus.load()
    made = []
    for attempt in ("one", "two"):
        folder = tmp_path / attempt
        folder.mkdir()
        surfaces.SURFACES["study"].make(random.Random("study 3"), folder, given)
        made.append({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
    assert made[0] == made[1] != {}


def test_every_fault_has_its_line_and_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    tally.add("study", 7, worker.Ended("hang", "longer than 20 s", False, 20.0, 5 << 20))
    fuzz.show(tally, 30.0)
    said = capsys.readouterr().out
    assert "python benchmarks/fuzz.py --surface study --seed 7" in said
    assert "hang, 1 times" in said
