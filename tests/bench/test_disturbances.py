"""What follows the state and the load is told as an effect and its steps count; what follows time is told as a
disturbance. Neither vetoes a difference that is many times its size. The run is recorded: `media-cache` on a virtual
machine with two CPUs, Linux 6.18, whose hypervisor's threads read for the target (steal of 0.11 to 0.16 at 200 and 400
objects, none at 60 and 120); nginx serves 543 to 623/s at 400 objects, Varnish 153 to 203/s, in every block."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadframe.analysis.disturbance import influences
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments import writing
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.reading import conclude
from loadframe.experiments.side_by_side import declare, measure_side_by_side
from loadframe.model import OTHERS, Investigation, Step, TargetState
from loadframe.reporting import vega
from loadframe.reporting.reports import render_text
from loadframe.runs.folder import RunFolder

RECORDED = Path(__file__).parents[1] / "data" / "runs" / "steal-follows-load"
Simulated = Callable[..., Bookkeeping]
Stolen = Callable[[dict[str, Any]], float]


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "render", lambda _spec, _name, _title: "")
    monkeypatch.setattr(vega, "start_engine", lambda: None)


def concluded(tmp_path: Path, stolen: Stolen | None = None) -> Investigation:
    """The recorded run; with the steal that this gives by its steps instead of that which was recorded."""
    run = Path(shutil.copytree(RECORDED, tmp_path / "run"))
    if stolen is not None:
        steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
        for step in steps:
            share = stolen(step)
            step["metrics"]["system.cpu.steal"] = share
            step["flags"] = [flag for flag in step["flags"] if flag != "steal"] + ["steal"] * (share > 0.1)
        (run / "steps.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    found = conclude(RunFolder.open(run)).answer
    assert isinstance(found, Investigation)
    return found


def test_an_alternative_is_diagnosed_as_its_own_kind_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[tuple[str, str]] = []

    def noted(*args: Any, **about: Any) -> Examined:
        kinds.append((about["treatment"], about["target_kind"]))
        return examine(*args, **about)

    monkeypatch.setattr(writing, "examine", noted)
    found = conclude(RunFolder.open(RECORDED))
    assert isinstance(found.answer, Investigation)
    (nginx,) = found.answer.alternatives
    name = nginx.round.treatment
    assert {kind for treatment, kind in kinds if treatment == name} <= {"nginx"}
    assert found.states[name].limits == nginx.round.limits and nginx.levels == ()


def told(inv: Investigation) -> dict[str, str]:
    """What the steal is."""
    return {one.kind: f"{one.steps} steps" for one in inv.quality.influences if one.flag == "steal"}


def said(inv: Investigation) -> str:
    return " ".join(render_text(inv, details=True).split())


def is_concluded(inv: Investigation) -> None:
    """nginx serves three times as much at 400 objects, and the target's own cause comes first."""
    (nginx,) = inv.alternatives
    most = nginx.by_level[-1]
    assert most.levels == (400.0,) and most.decision == "better"
    assert most.ratio >= 3
    assert OTHERS not in {finding.id for finding in inv.rounds[0].findings}
    assert inv.rounds[0].findings[0].id == "memory.mmap_page_faults"
    text = said(inv)
    assert f"Nginx serves {most.ratio:.2g} times what varnish serves at 400 objects" in text
    assert "others take the CPU" not in text and "Work outside the study" not in text


def test_steal_that_follows_the_state_that_reads_from_the_disk_is_an_effect(tmp_path: Path) -> None:
    inv = concluded(tmp_path)
    is_concluded(inv)
    assert told(inv) == {"effect": "10 steps"}
    text = said(inv)
    assert "10 of 30 steps, at 200, 400: the hypervisor took 11 % to 16 % of the CPUs. An effect" in text
    assert "I/O costs the hypervisor CPU time" in text


def test_steal_that_comes_and_goes_by_itself_is_a_disturbance(tmp_path: Path) -> None:
    """Every eighteen seconds, for six of them, a third of the CPUs."""
    inv = concluded(tmp_path, lambda step: 0.33 if step["started_s"] % 18 < 6 else 0.01)
    is_concluded(inv)
    assert set(told(inv)) == {"disturbance"}
    assert "of the CPUs. A disturbance: it does not follow the state or the load" in said(inv)


def test_a_disturbance_widens_the_interval_by_what_it_can_have_cost(tmp_path: Path) -> None:
    """A third of the CPUs of one step of the slower side: it may have served half as much again."""
    quiet = concluded(tmp_path / "quiet", lambda step: 0.0).alternatives[0].by_level[-1]
    numbers = {23, 24}  # both steps of its last block
    loud = concluded(tmp_path / "loud", lambda step: 0.33 if step["number"] in numbers else 0.0)
    seen = loud.alternatives[0].by_level[-1]
    assert seen.ratio == quiet.ratio and seen.low < quiet.low and seen.decision == "better"
    assert "whatever disturbances cost in 1 of 6 steps" in seen.method


LARGE = 'alternative=[{name="large",target.settings.table_open_cache=400}]'


class Run:
    """Keeps nothing."""

    def append_line(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("stolen", "again"),
    [
        (lambda cache, _: 0.14 if cache == 400 else 0.0, 4),
        (lambda _, taken: 0.3 if taken % 5 == 0 else 0.0, None),
    ],
    ids=["once at each load, to see whether it stays", "whenever it comes"],
)
def test_a_step_is_taken_again_for_what_its_state_does_not_show_at_its_load(
    simulated: Simulated, stolen: Callable[[object, int], float], again: int | None
) -> None:
    taken = 0

    def served(state: TargetState, level: float) -> tuple[float, Mapping[str, float]]:
        nonlocal taken
        taken += 1
        cache = state.settings["table_open_cache"]
        return (2000.0 if cache == 400 else 1000.0), {"system.cpu.steal": stolen(cache, taken)}

    book = simulated(served, LARGE)
    measure_side_by_side(book, Run(), declare(book))  # type: ignore[arg-type]
    flagged = [step for step in book.steps if "steal" in step.flags]
    if again is None:
        assert book.repeated >= len(flagged) / 2 > 0
    else:
        assert 0 < book.repeated <= again < len(flagged) / 2


def test_programs_outside_the_study_that_compete_with_it_are_a_disturbance_and_named(
    make_step: Callable[..., Step],
) -> None:
    """They have the less of the CPUs the more the study uses: what works for it uses more."""

    def run(*shares: float) -> list[Step]:
        return [
            make_step(
                level, 100.0 * level,
                {
                    "system.cpu.foreign": share, "system.cpu.own": 0.3 * level, "system.cpu.utilization": 0.99,
                    "stranger.cc1plus.cores": 2 * share,
                },
                block=block, flags=("stranger",) if share > 0.2 else (),
            )
            for block in range(4)
            for level, share in zip((1, 2, 3, 4), shares, strict=True)
        ]  # fmt: skip

    (rival,), (helper,) = influences(run(0.51, 0.41, 0.3, 0.1)), influences(run(0.1, 0.3, 0.41, 0.51))
    assert (rival.kind, rival.names) == ("disturbance", ("cc1plus",))
    assert helper.kind == "effect"
