"""A run folder from a stranger is data: it writes and shows nothing of elsewhere, and is refused in words."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loadframe
from loadframe.changes import journal
from loadframe.errors import UserError
from loadframe.experiments.writing import RULES
from loadframe.model import Investigation, Step
from loadframe.reporting import vega

RECORDED = Path(__file__).parents[1] / "data" / "runs"
OF_TUNE = pytest.mark.extension("loadframe_tune")
LINE_ENDS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e")
"""Where str.splitlines ends a line, and JSON does not."""


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they say is tested with the pages; drawing them takes most of a report's time."""
    monkeypatch.setattr(vega, "render", lambda _spec, _name, _title: "")
    monkeypatch.setattr(vega, "start_engine", lambda: None)


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """A copy of a recorded run; of one that was killed, without its conclusion."""

    def copy(name: str, *, killed: bool = False) -> Path:
        shutil.copytree(RECORDED / name, tmp_path / name, dirs_exist_ok=True)
        for file in ("investigation.json", "conduct.json") if killed else ():
            (tmp_path / name / file).unlink(missing_ok=True)
        return tmp_path / name

    return copy


def report(path: Path) -> str:
    """As the verb does it; the text."""
    run = loadframe.open_run(path)
    found = loadframe.write_answer(run, loadframe.conclude(run))
    return loadframe.render_text(found) + loadframe.render_markdown(found, details=True)


def read_all(path: Path) -> list[str]:
    """Every way in which a run is read; what it was refused with."""
    refused = []
    for read in (
        lambda: report(path),
        lambda: loadframe.conclude(loadframe.open_run(path)),
        lambda: loadframe.predict_run(loadframe.open_run(path), [8.0]),
        lambda: loadframe.compare_runs(loadframe.open_run(path), loadframe.open_run(RECORDED / "investigation")),
        lambda: loadframe.write_speedscope(loadframe.open_run(path), Path("/dev/null")),
        lambda: journal.not_reverted(journal.read(path)),
    ):
        try:
            read()
        except UserError as error:
            assert error.fact and error.remedy
            refused.append(str(error))
    return refused


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the first record of a file."""
    first, *rest = path.read_text().split("\n")
    record = json.loads(first)
    change(record)
    path.write_text("\n".join([json.dumps(record), *rest]))


@pytest.mark.parametrize("name", ["investigation", "ladder", pytest.param("tuning", marks=OF_TUNE)])
def test_a_run_is_read_in_every_way(recorded: Callable[..., Path], name: str) -> None:
    path = recorded(name)
    refused = read_all(path)
    assert all("has no profiles" in one or "no level in common" in one for one in refused), refused
    assert "Content-Security-Policy" in (path / "report.html").read_text()


@OF_TUNE
def test_the_settings_to_copy_are_worked_out_and_their_file_is_ours(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    """A name from the record wrote any file; its text any text."""
    path, victim = recorded("tuning"), tmp_path / "victim"
    edit(path / "tuning.json", lambda found: found.update(file_name=str(victim), file_text="* * * * * root x\n"))
    said = report(path)
    assert not victim.exists()
    assert (path / "tuned.sql").read_text().startswith("PRAGMA journal_mode = WAL;\n")
    assert "root x" not in said + (path / "tuned.sql").read_text() + (path / "report.html").read_text()


@pytest.mark.parametrize("value", ["WAL; ATTACH '/x' AS y", "WAL\nATTACH '/x' AS y", "\x1b[2J"])
def test_a_setting_that_the_target_cannot_have_is_not_written(recorded: Callable[..., Path], value: str) -> None:
    path = recorded("tuning")
    edit(path / "tuning.json", lambda found: found["settings"][0].update(after=value))
    assert any("tuning.json" in one for one in read_all(path))
    assert not (path / "tuned.sql").exists()


@pytest.mark.parametrize("name", ["investigation", "ladder", "tuning"])
def test_links_in_the_place_of_what_is_written_are_not_followed(
    recorded: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    path, victim = recorded(name, killed=True), tmp_path / "victim"
    victim.write_text("ours")
    for file in ("report.html", "metrics.parquet", "limits.parquet", "investigation.json", "findings.json",
                 "verdicts.json", "tuned.sql", "forecasts.json"):  # fmt: skip
        if not (path / file).exists():
            for planted in (path / file, path / f"{file}.part"):
                planted.symlink_to(victim)
    read_all(path)
    assert victim.read_text() == "ours"


def test_what_lies_elsewhere_is_not_shown(recorded: Callable[..., Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:$6$secret;x 1\n")
    path = recorded("investigation", killed=True)
    first = json.loads((path / "profiles/steps.jsonl").read_text().split("\n")[0])
    line = next(source["file"] for source in first["sources"] if source["file"].endswith("target.cpu.folded"))
    (path / "profiles" / line).unlink()
    (path / "profiles" / line).symlink_to(secret)
    said = report(path) + (path / "report.html").read_text()
    assert "secret;x" not in said and "$6$" not in said
    assert "is a link, not a regular file" in said
    (path / "investigation.json").unlink()
    edit(path / "profiles/steps.jsonl", lambda step: step["sources"][0].update(file="../../secret"))
    said = report(path) + (path / "report.html").read_text()
    assert "not the name of a file below a folder" in " ".join(said.split())


@pytest.mark.parametrize(
    "file", ["steps.jsonl", "study.json", "run.json", "raw/host.lfr", "conduct.json", "changes.jsonl"]
)
@pytest.mark.parametrize("plant", ["/dev/zero", "/dev/full", "fifo", "folder", "sparse"])
def test_what_is_no_file_is_refused_and_nobody_waits(recorded: Callable[..., Path], file: str, plant: str) -> None:
    path = recorded("investigation", killed=True)
    (path / file).unlink(missing_ok=True)
    if plant == "fifo":
        os.mkfifo(path / file)
    elif plant == "folder":
        (path / file).mkdir()
    elif plant == "sparse":
        with (path / file).open("wb") as sparse:
            sparse.truncate(2**33)
    else:
        (path / file).symlink_to(plant)
    refused = read_all(path)
    if file != "raw/host.lfr":  # it is only a warning there
        assert any(file in one for one in refused)


VALUES = [float("nan"), float("inf"), -1.0, 1e300, 10**400, "5", None, True, [], {}, "\ud800", "\0", [[]] * 3]


@pytest.mark.parametrize("value", VALUES, ids=[ascii(value)[:12] for value in VALUES])
def test_no_value_of_a_step_ends_in_anything_but_words(recorded: Callable[..., Path], value: object) -> None:
    path = recorded("investigation", killed=True)
    whole, today = (path / "steps.jsonl").read_text(), {"schema": "loadframe.step/4", "purpose": "curve"}
    for key in Step.__dataclass_fields__:
        edit(path / "steps.jsonl", lambda step, key=key: step.update({**today, key: value}))
        try:
            loadframe.open_run(path).steps()
        except UserError as error:
            assert "steps.jsonl, line 1" in error.fact and error.remedy
        else:
            of_none = key in ("round", "block") and value is None
            assert of_none or key in ("treatment", "closed_loop") or value in ([], {}), key
            read_all(path)
        (path / "steps.jsonl").write_text(whole)


@pytest.mark.parametrize(
    "text",
    ["9" * 5000, "[" * 3000 + "]" * 3000, '{"schema":"loadframe.step/' + "9" * 5000 + '"}',
     '{"schema":"loadframe.step/\u00b2"}', '{"schema":"loadframe.step/0"}',
     '{"schema":null}', "null", "\x00", '"' + "x" * 10_000, "{}", ""],
)  # fmt: skip
def test_a_line_that_is_no_record_is_told_with_its_number(recorded: Callable[..., Path], text: str) -> None:
    path = recorded("ladder")
    (path / "steps.jsonl").write_text(text + "\n" + (path / "steps.jsonl").read_text())
    refused = read_all(path)
    assert any("steps.jsonl, line 1" in one for one in refused)
    assert all(len(one) < 2000 for one in refused)


def test_two_steps_of_one_number_are_damage(recorded: Callable[..., Path]) -> None:
    path = recorded("ladder")
    text = (path / "steps.jsonl").read_text()
    (path / "steps.jsonl").write_text(text + text)
    assert any("there is a step 1 before it already" in one for one in read_all(path))


@pytest.mark.parametrize("end", LINE_ENDS, ids=[ascii(end) for end in LINE_ENDS])
def test_a_line_ends_at_a_line_feed_alone(recorded: Callable[..., Path], end: str) -> None:
    """str.splitlines ends it at seven more characters, some of which JSON has as they are."""
    path = recorded("ladder")
    steps = loadframe.open_run(path).steps()
    treatment = f"A{end}B"
    with (path / "treatments.jsonl").open("a") as file:
        told = {"schema": "loadframe.treatment/1", "name": treatment, "title": end, "state": {}}
        escaped = json.dumps(told, ensure_ascii=end < " ")
        file.write(escaped + "\n")
    assert treatment in loadframe.open_run(path).treatments()
    assert loadframe.open_run(path).steps() == steps


def test_a_treatment_that_no_line_declares_is_told(recorded: Callable[..., Path]) -> None:
    path = recorded("investigation", killed=True)
    (path / "treatments.jsonl").write_text("")
    assert any("treatments.jsonl has no treatment 'A'" in one for one in read_all(path))


def test_a_study_that_is_none_is_told(recorded: Callable[..., Path]) -> None:
    path = recorded("investigation", killed=True)
    for damage in ('{"schema":"loadframe.study/1"}', '{"schema":"loadframe.study/1","load":5}'):
        (path / "study.json").write_text(damage)
        assert any("study.json" in one or "study" in one for one in read_all(path))


@pytest.mark.parametrize("row", [{}, {"step": 1.0, "level": 0.0, "block": 1.0, "throughput": 1.0,
                                      "latency_p95_ms": 1.0, "errors": 0.0}])  # fmt: skip
def test_a_row_that_is_no_step_s_is_told(recorded: Callable[..., Path], row: dict[str, float]) -> None:
    path = recorded("investigation")
    edit(path / "investigation.json", lambda found: found["rounds"][0]["footprint"].append(row))
    assert any("investigation.json: " in one for one in read_all(path))


@pytest.mark.parametrize("point", [{"one_in": 0.5, "latency_ms": 1.0}, {"one_in": 2.0, "latency_ms": 0.0}, None])
def test_latencies_that_cannot_be_drawn_are_told(recorded: Callable[..., Path], point: dict[str, float] | None) -> None:
    path = recorded("investigation")
    quantiles = dict.fromkeys(("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "p999_ms"), 1.0)
    told = {"treatment": "A", "level": 4.0, "steps": 1, "requests": 9, "failed": 0, "latency": quantiles}
    points = [point] if point is not None else []
    edit(path / "investigation.json", lambda found: found.update(latencies=[{**told, "points": points}]))
    assert any("investigation.json: the latencies of 'A' have" in one for one in read_all(path))


@pytest.mark.parametrize("place", ["peak", "points", "at", "levels"])
def test_a_record_of_today_whose_parts_do_not_fit_is_damage(recorded: Callable[..., Path], place: str) -> None:
    path = recorded("investigation")
    run = loadframe.open_run(path)
    answer = loadframe.conclude(run).answer
    assert isinstance(answer, Investigation) and answer.rules == RULES
    run.write_record("investigation.json", "investigation-record", answer)
    assert read_all(path) == []

    def damage(found: dict[str, Any]) -> None:
        curve, variant = found["rounds"][0]["curve"], found["variants"][0]
        of = {"peak": (curve["peak"], "load", 3.5), "points": (curve, "points", []),
              "at": (variant, "at", 3.5), "levels": (variant, "levels", [])}  # fmt: skip
        record, key, value = of[place]
        record[key] = value

    edit(path / "investigation.json", damage)
    assert any("investigation.json: the " in one for one in read_all(path))
