"""Runs of the versions before: read, reported and compared as they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import loadframe
from loadframe.changes import journal
from loadframe.errors import RunError
from loadframe.experiments.writing import finish
from loadframe.model import FleetDrivers, Investigation, Ladder, Purpose
from loadframe.model.verdict import NOT_KNOWN
from loadframe.reporting import vega
from loadframe.runs.formats import decode, decode_document
from loadframe_fleet.records import FleetAttempt
from loadframe_tune.model import Tuning

RECORDED = Path(__file__).parents[1] / "data" / "runs"
OLD = ("investigation", "ladder", "tuning")
"""Their steps are of version 1, which did not say what a step was for."""


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "render", lambda _spec, _name, _title: "")
    monkeypatch.setattr(vega, "start_engine", lambda: None)


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / request.param, tmp_path / request.param))


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]


def test_they_are_of_the_version_before() -> None:
    assert {line["schema"] for name in OLD for line in lines(RECORDED / name)} == {"loadframe.step/1"}


@pytest.mark.parametrize(
    ("number", "block", "purpose", "place"),
    [
        (1, -1, "warming", (None, None)),
        (0, -1, "warming", (None, None)),
        (2, 0, "sizing", (2, None)),
        (0, 1, "side by side", (None, 1)),
        (1, 1, "", (1, 1)),
        (3, 2, "", (3, 2)),
    ],
)
def test_what_blocks_and_rounds_meant_is_the_purpose(
    number: int, block: int, purpose: Purpose, place: tuple[int | None, int | None]
) -> None:
    line = {**lines(RECORDED / "investigation")[0], "round": number, "block": block}
    found = decode_document("step", json.dumps(line).encode(), where="steps.jsonl")
    assert (found["purpose"], (found["round"], found["block"])) == (purpose, place)


@pytest.mark.parametrize(
    ("purpose", "place"),
    [
        ("warming", (None, None)),
        ("sizing", (2, None)),
        ("side by side", (None, 3)),
        ("proof", (2, 3)),
        ("curve", (2, 3)),
        ("trial", (2, 3)),
        ("", (2, 3)),
    ],
)
def test_of_version_2_the_numbers_that_said_nothing_are_gone(
    purpose: Purpose, place: tuple[int | None, int | None]
) -> None:
    line = {**lines(RECORDED / "investigation")[0], "schema": "loadframe.step/2", "round": 2, "block": 3}
    found = decode_document("step", json.dumps({**line, "purpose": purpose}).encode(), where="steps.jsonl")
    assert (found["round"], found["block"]) == place


def test_it_is_reported_and_its_steps_that_only_warmed_count_for_nothing(old: Path) -> None:
    before = {name: state.curve for name, state in loadframe.conclude(loadframe.open_run(old)).states.items()}
    warmed = [{**line, "number": 900 + line["number"], "block": -1, "throughput": 1.0} for line in lines(old)[:6]]
    with (old / "steps.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in warmed)
    run = loadframe.open_run(old)
    assert len(run.steps()) == len(lines(old))
    case = loadframe.conclude(run)
    assert {name: state.curve for name, state in case.states.items()} == before
    found = loadframe.write_answer(run, case)
    if isinstance(found, Ladder | Tuning):
        assert len(loadframe.render_text(found).splitlines()) > 3
    else:
        assert isinstance(found, Investigation)
        assert found.gain is not None and "WAL" in loadframe.render_text(found)
        assert (old / "report.html").stat().st_size > 10_000


def test_its_end_is_told_as_of_every_run(old: Path) -> None:
    (old / "metrics.parquet").unlink(missing_ok=True)
    end = finish(loadframe.open_run(old))
    assert (old / "metrics.parquet").exists()
    assert (end.run, end.report) == (str(old), str(old / "report.html"))
    assert end.quality.steps == len(lines(old))
    assert set(end.warnings) < set(end.notes), "how it went, too"
    assert end.after([*end.warnings, "own"])[-1] == "own", "each once"


def test_it_is_compared_with_another_one(old: Path) -> None:
    verdict = loadframe.compare_runs(loadframe.open_run(old), loadframe.open_run(RECORDED / "investigation")).verdict
    assert verdict.levels == (1, 2, 4)
    assert verdict.low < 1 < verdict.high, "the same queue on the same machine"


def test_a_finished_run_is_shown_though_its_study_has_a_key_that_is_gone(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RECORDED / "job-queue", tmp_path / "run"))
    study = json.loads((run / "study.json").read_text())
    (run / "study.json").write_text(json.dumps({**study, "of_long_ago": {"key": 1}}))
    found = loadframe.conclude(loadframe.open_run(run)).answer
    assert isinstance(found, Investigation)
    assert [variant.gives_up != "" for variant in found.variants] == [False, True]
    assert not any(variant.to_copy for variant in found.variants), "what is typed in depends on the study"


def test_a_record_of_which_later_steps_are_lost_is_told_as_it_was_kept(tmp_path: Path) -> None:
    """Seen: "a curve needs at least one level", a fault of ours, where a disk had lost the end of steps.jsonl."""
    run = Path(shutil.copytree(RECORDED / "job-queue", tmp_path / "run"))
    (run / "steps.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines(run) if line["treatment"] == "A")
    )
    found = loadframe.conclude(loadframe.open_run(run)).answer
    assert isinstance(found, Investigation)
    assert "WAL" in loadframe.render_text(found, details=True)


def test_a_search_of_before_fresh_blocks_has_its_proof_and_says_what_it_may_overstate(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RECORDED / "tuning", tmp_path / "run"))
    found = loadframe.conclude(loadframe.open_run(run)).answer
    assert isinstance(found, Tuning) and found.proof is not None
    assert (found.proof.reported, found.proof.expected, len(found.proof.levels)) == (found.reported, found.expected, 2)
    assert "may be overstated" in loadframe.render_text(found)
    edited = json.loads((run / "tuning.json").read_text())
    (run / "tuning.json").write_text(json.dumps({**edited, "verdict": None, "end": "stopped"}))
    stopped = loadframe.conclude(loadframe.open_run(run)).answer
    assert isinstance(stopped, Tuning) and stopped.proof is None


@pytest.mark.parametrize(
    ("more", "decision"),
    [
        ({"low": 1e-50, "high": 1e50, "ratio": 1.0}, "cannot-tell"),
        ({"blocks": 1}, "cannot-tell"),
        ({"unsettled_at": [1.0]}, "cannot-tell"),
        ({}, "no-proven-difference"),
    ],
)
def test_what_could_not_be_told_had_the_decision_of_no_difference(more: dict[str, Any], decision: str) -> None:
    record = json.loads((RECORDED / "ladder" / "ladder.json").read_text())
    record["rungs"][1]["trial"] |= {"method": "not judged: one side did nothing", **more}
    found = decode_document("ladder-record", json.dumps(record).encode(), where="ladder.json")
    trial = found["rungs"][1]["comparison"]["verdict"]
    assert (trial["decision"], trial["method"].startswith("one")) == (decision, decision == "cannot-tell")
    assert found["total"]["verdict"] == record["total"], "what was decided stays"


def test_drivers_and_capacities_had_ratios_of_their_own() -> None:
    drivers = {
        "schema": "loadframe.fleet-drivers/1", "level": 24.0, "drivers": ["a", "b"], "fewer": ["a"],
        "throughput": 300.0, "throughput_fewer": 201.0, "ratio": 1.49, "low": 1.46, "high": 1.52, "blocks": 5,
        "limit": "drivers",
    }  # fmt: skip
    one = decode("fleet-drivers", json.dumps(drivers).encode(), FleetDrivers, where="fleet-drivers.jsonl")
    assert (one.verdict.low, one.verdict.decision, one.verdict.blocks) == (1.46, "better", 5)
    assert [(row.load, row.before, row.after) for row in one.levels] == [(24, 201, 300)]
    same = {"name": "more", "host": "one", "load": None}
    bounds: list[dict[str, Any]] = [
        {"ratio": 2.0, "ratio_low": 1.8, "ratio_high": 2.2, "decision": "better"},
        {"ratio": None, "ratio_low": 2.9, "ratio_high": None, "decision": "better"},
        {"ratio": None, "ratio_low": None, "ratio_high": None, "decision": "no-proven-difference", "failed": "ended"},
    ]
    capacity = {"schema": "loadframe.capacity-record/1", "beside": [{**same, **each} for each in bounds]}
    found = decode_document("capacity-record", json.dumps(capacity).encode(), where="capacity.json")["beside"]
    told = [(each["verdict"]["ratio"], each["verdict"]["decision"]) for each in found]
    assert told == [(2.0, "better"), (2.9, "better"), (1.0, "cannot-tell")]


@pytest.mark.parametrize("more", [{"rungs": None}, {"rungs": [1]}, {"rungs": {}}])
def test_an_old_record_that_was_damaged_is_refused_with_its_name(more: dict[str, Any]) -> None:
    record = json.loads((RECORDED / "ladder" / "ladder.json").read_text())
    with pytest.raises(RunError, match=r"ladder\.json"):
        decode("ladder-record", json.dumps({**record, **more}).encode(), Ladder, where="ladder.json")


def test_at_a_load_of_which_an_old_run_has_no_interval_its_gain_is_from_the_curves() -> None:
    found = loadframe.conclude(loadframe.open_run(RECORDED / "investigation")).answer
    assert isinstance(found, Investigation)
    (variant,) = found.variants
    assert all(row.low < row.ratio < row.high for row in variant.levels)


def test_drivers_of_one_block_or_without_a_ratio_prove_nothing() -> None:
    old = {
        "schema": "loadframe.fleet-drivers/1", "level": 24.0, "drivers": ["a", "b"], "fewer": ["a"],
        "throughput": 300.0, "throughput_fewer": 201.0, "ratio": 1.49, "low": 1.46, "high": 1.52, "blocks": 5,
        "limit": "not proven",
    }  # fmt: skip

    def read(**more: Any) -> FleetDrivers:
        return decode("fleet-drivers", json.dumps({**old, **more}).encode(), FleetDrivers, where="fleet-drivers.jsonl")

    assert read(blocks=1).verdict.decision == "cannot-tell"
    none = read(ratio=1.0, low=NOT_KNOWN[0], high=NOT_KNOWN[1])
    assert (none.verdict.decision, none.levels) == ("cannot-tell", ())
    open_ = read(high=None)
    assert (open_.verdict.high, open_.verdict.decision, open_.levels[0].high) == (NOT_KNOWN[1], "better", NOT_KNOWN[1])


def test_the_cause_of_a_bulk_loader_has_the_name_of_its_kind() -> None:
    run = loadframe.open_run(RECORDED / "bulk-ingest")
    found = loadframe.conclude(run).answer
    assert isinstance(found, Investigation)
    assert found.rounds[0].findings[0].id == "bulk_loader.spawn_per_file"
    assert "bulk_loader.spawn_per_file" in {change.finding for change in journal.read(RECORDED / "bulk-ingest")}


def test_what_a_host_of_a_fleet_concluded_is_of_the_version_that_it_was_of() -> None:
    record = json.loads((RECORDED / "investigation" / "investigation.json").read_text())
    del record["schema"]
    task = {"task": "t", "purpose": "investigation", "number": 1, "attempt": 1, "host": "one", "changes": {}}
    line = {"schema": "loadframe.fleet-trial/1", **task, "began_s": 0.0, "ended_s": 1.0, "investigation": record}
    found = decode("fleet-trial", json.dumps(line).encode(), FleetAttempt, where="fleet-trials.jsonl")
    assert found.investigation is not None and len(found.investigation.rounds) == 2
    beside = {"name": "more", "host": "one", "end": "", "load": None, "ratio": None, "ratio_low": 2.9}
    line = {**line, "investigation": None, "capacity": {"beside": [beside]}}
    told = decode_document("fleet-trial", json.dumps(line).encode(), where="fleet-trials.jsonl")
    assert told["capacity"]["beside"][0]["verdict"]["ratio"] == 2.9
