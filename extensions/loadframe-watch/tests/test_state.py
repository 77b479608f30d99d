"""What a watch has learned and kept: what cannot be used is said and learned again, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadframe_watch.days import lines
from loadframe_watch.model import ROW_S, Model, Sample
from watch_farm import DAY_S, Farm, watching

OTHERS: tuple[Any, ...] = (None, True, 0, -7, 2.5, 1e17, "x", "7", [], [1], [[1, 2]], {}, {"load": 1})
"""In the place of every field."""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a watch of two days and a half: all of it has begun to judge."""
    folder = tmp_path_factory.mktemp("learned")
    farm = Farm(3, 300.0, leak=1 << 14)
    with watching(farm, folder, 300.0) as watcher:
        while farm.passed_s < 2.5 * DAY_S:
            watcher.tick()
            farm.clocks.advance(300.0)
        watcher.tick()
        watcher.journal.keep({"boot": "", "model": watcher.model.as_json()})
    state = dict(json.loads((folder / "state.json").read_text()))
    for series in state["model"]["series"].values():  # shorter lists are read in less time
        for name in ("loads", "values", "innovations"):
            series[name] = series[name][-40:]
    state["model"]["days"]["today"] = state["model"]["days"]["today"][-40:]
    state["model"]["rows"]["rows"] = state["model"]["rows"]["rows"][-40:]
    return state


def fields(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place within it, as (what holds it, its name); of a list the first and the last place."""
    names = list(value) if isinstance(value, dict) else sorted({0, len(value) - 1} & set(range(len(value))))
    for name in names:
        yield value, name
        if isinstance(value[name], dict | list):
            yield from fields(value[name])


def goes_on(model: Model, from_s: float) -> None:
    """A few hours more, and what is said and kept of them."""
    for at in range(12):
        values = {
            "target.memory.rss": 1e9,
            "system.memory.used": 2e9,
            "system.memory.limit": 3e9,
            "target.cpu.cores": 1,
        }
        t_s = from_s + at // 2 * 3600 + at % 2 * ROW_S
        model.take(Sample(t_s, values, 150.0 + at, {"mariadb.table_open_cache": 0.5}, response_s=2.0, failed=False))
        model.described(t_s)
    json.dumps(model.as_json())


@pytest.mark.long
def test_every_field_of_another_type_is_refused_in_words_or_can_be_gone_on_with(learned: dict[str, Any]) -> None:
    model = learned["model"]
    from_s = model["days"]["today"][-1][0]
    refused = taken = 0
    for holder, name in list(fields(model)):
        was = holder[name]
        for other in OTHERS:
            holder[name] = other
            restored = Model("jobs", {})
            if restored.restore(model):
                refused += 1
            else:
                taken += 1
                goes_on(restored, from_s)
        holder[name] = was
    assert refused > 4 * taken > 0
    assert Model("jobs", {}).restore(model) == ""


@pytest.mark.long
def test_a_field_that_is_missing_or_that_nothing_knows_is_refused(learned: dict[str, Any]) -> None:
    model = learned["model"]
    for holder, name in list(fields(model)):
        if isinstance(holder, dict) and holder is not model["given_s"] and holder is not model["fit"]["limits"]:
            was = holder.pop(name)
            assert Model("jobs", {}).restore(model), name
            holder[name] = was
            holder["more"] = 1
            assert Model("jobs", {}).restore(model), name
            del holder["more"]


def test_the_state_of_an_earlier_version_is_taken(learned: dict[str, Any]) -> None:
    earlier = {"told" if name == "given_s" else name: value for name, value in learned["model"].items()}
    assert Model("jobs", {}).restore(earlier) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting"),
        ("", "Expecting"),
        ("[]", "not a state of loadframe.watch/1"),
        ('{"schema":"loadframe.watch/9"}', "not a state of loadframe.watch/1"),
        ('{"schema":"loadframe.watch/1","n":3}', "is no table"),
        ('{"schema":"loadframe.watch/1","n":"x","model":{"series":7}}', "fields than series, days"),
        ('{"schema":"loadframe.watch/1","n":18446744073709551615,"boot":[],"model":[]}', "is no table"),
        (None, "is a folder"),
    ],
)
def test_what_cannot_be_used_is_said_and_learned_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    farm, state = Farm(1, 100.0), tmp_path / "state.json"
    with watching(farm, tmp_path, 10.0) as watcher:
        watcher.tick()
    state.unlink(missing_ok=True)
    if text is None:
        state.mkdir()
    else:
        state.write_text(text)
    with watching(farm, tmp_path, 10.0, for_s=20.0) as again:
        again.run()
    said = capfd.readouterr().err
    assert "What was learned before cannot be used (state.json: " in said and words in said
    assert ("a restart begins without it" in said) is (text is None)
    numbers = [line.n for line in lines(tmp_path)]
    assert numbers == list(range(1, len(numbers) + 1))
