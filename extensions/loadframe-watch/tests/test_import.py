"""`watch --import`: the first answer comes from what monitoring has recorded, and a watch goes on from there."""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadframe.errors import RunError, SampleError, UsageError
from loadframe.model import LoadInterval
from loadframe.system.files import Folder, Whose
from loadframe_watch.days import days, lines
from loadframe_watch.importing import begin_from, mapping_of
from loadframe_watch.observed.report import render_import
from loadframe_watch.page import WatchView
from loadframe_watch.records import ImportedWatch, WatchPlan
from watch_farm import BEGUN_S, BEND, CACHE, DAY_S, TABLES, Farm, SimulatedClocks, watching

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
USE = "mariadb.table_open_cache"
AS = ("load=jobs", f"{USE}=tables / {CACHE}")
STEP_S = 300.0
ALONE = WatchPlan("", "")
"""Without a folder: the answer alone."""


def rows(days_: float, growth: float, ends_s: float) -> list[tuple[float, float, float]]:
    """(time, jobs, tables) of a farm whose peak of 200 jobs grows by so much a day."""
    draw, count = random.Random(3), int(days_ * DAY_S / STEP_S)
    found = []
    for at in range(count):
        day = at * STEP_S / DAY_S
        breath = 0.55 - 0.45 * math.cos(2 * math.pi * (day - 0.2))
        jobs = 200 * (1 + growth * day) * breath * math.exp(draw.gauss(0, 0.02))
        found.append((ends_s - (count - at) * STEP_S, jobs, min(CACHE, TABLES * jobs + draw.gauss(0, 20))))
    return found


def as_csv(folder: Path, found: list[tuple[float, float, float]]) -> Path:
    file = folder / "month.csv"
    text = "".join(f"{at_s:.0f},{jobs:.2f},{tables:.0f},{2 + jobs / 500:.3f}\n" for at_s, jobs, tables in found)
    file.write_text(f"time,jobs,tables,response_s\n{text}")
    return file


def as_prometheus(folder: Path, found: list[tuple[float, float, float]]) -> Path:
    file = folder / "range.json"
    result = [
        {"metric": {"__name__": name}, "values": [[row[0], str(row[at])] for row in found]}
        for at, name in enumerate(("jobs", "tables"), 1)
    ]
    file.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    return file


@pytest.mark.parametrize("write", [as_csv, as_prometheus])
def test_last_month_says_which_limit_is_reached_at_which_load_and_when(
    tmp_path: Path, write: Callable[[Path, list[tuple[float, float, float]]], Path]
) -> None:
    file = write(tmp_path, rows(14, 0.06, time.time()))
    found = begin_from([str(file)], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w"), load="active_jobs"))
    (limit,) = found.model["limits"]
    assert limit["id"] == USE and limit["at_load"]["load"] == pytest.approx(BEND, rel=0.02)
    in_days = {name: (limit["at_s"][name] - found.to_s) / DAY_S for name in ("low", "value", "high")}
    peaks_in = (BEND / 200 - 1) / 0.06 - 14  # days until the daily peak is there
    assert in_days["low"] < peaks_in < in_days["high"] and in_days["value"] == pytest.approx(peaks_in, abs=2)
    assert found.rows == 14 * DAY_S / STEP_S == sum(1 for _ in lines(tmp_path / "w", kinds=("sample",)))
    assert len(days(tmp_path / "w")) in (14, 15)


def test_a_load_that_only_breathes_is_not_on_its_way(tmp_path: Path) -> None:
    file = as_csv(tmp_path, rows(14, 0.0, time.time()))
    (limit,) = begin_from([str(file)], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w"))).model["limits"]
    assert limit["at_load"]["load"] == pytest.approx(BEND, rel=0.02) and limit["at_s"] is None


@pytest.mark.long
@pytest.mark.parametrize("imported", [True, False])
def test_a_watch_that_goes_on_from_there_speaks_on_its_first_days(tmp_path: Path, imported: bool) -> None:
    """Without the import it does not know yet that the peaks rise."""
    if imported:
        plan = WatchPlan("a render farm", str(tmp_path / "w"), load="active_jobs", kinds=("process", "mariadb"))
        begin_from([str(as_csv(tmp_path, rows(14, 0.06, BEGUN_S)))], mapping_of(AS, ()), plan)
    farm = Farm(5, 200 * (1 + 0.06 * 14), growth=0.06 / (1 + 0.06 * 14), clocks=SimulatedClocks(BEGUN_S + 60))
    with watching(farm, tmp_path / "w", STEP_S) as watcher:
        while farm.passed_s < 2 * DAY_S:
            watcher.tick()
            farm.clocks.advance(STEP_S)
        ahead = [one["about"] for one in watcher.alarms if one["alarm"] == "limit-ahead"]
    assert ahead == ([USE] if imported else [])
    found = list(lines(tmp_path / "w"))
    assert [line.n for line in found] == list(range(1, found[-1].n + 1))
    assert [line.data["reason"] for line in found if line.kind == "gap"] == (["stopped"] if imported else [])


def test_a_change_of_the_system_is_told_with_what_was_learned_across_it(tmp_path: Path) -> None:
    now_s = time.time()
    found = [
        (at_s, jobs, min(CACHE, tables * (0.6 if at_s < now_s - 5 * DAY_S else 1)))
        for at_s, jobs, tables in rows(14, 0.0, now_s)
    ]
    told = begin_from([str(as_csv(tmp_path, found))], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w")))
    (note,) = [one for one in told.notes if "rows from before it were learned from, too" in one]
    assert f"at equal load the use of {USE} is" in note and "higher from then on" in note


def test_the_answer_alone_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = as_csv(tmp_path, rows(3, 0.0, time.time()))
    told = [begin_from([str(file)], mapping_of(AS, ()), ALONE) for _ in range(2)]
    assert list(tmp_path.iterdir()) == [file]
    assert told[0].model["limits"] and told[0].folder == "" and "Day files" not in render_import(told[0])


def test_of_two_rows_no_bend_is_denied(tmp_path: Path) -> None:
    file = as_csv(tmp_path, rows(3, 0.0, time.time())[:2])
    told = begin_from([str(file)], mapping_of(AS, ()), ALONE)
    assert "No load is seen from which" not in render_import(told)
    assert any("is not known" in note for note in told.notes)


def test_what_was_imported_alone_has_ended_and_was_not_killed(tmp_path: Path) -> None:
    begin_from(
        [str(as_csv(tmp_path, rows(3, 0.0, time.time())))], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w"))
    )
    view = WatchView(Folder(tmp_path / "w", Whose.NAMED), "0/w")
    view.refresh()
    assert view.status == "ended"
    assert [line.data["reason"] for line in lines(tmp_path / "w", kinds=("end",))] == ["imported"]


def test_the_response_of_others_is_not_taken_for_that_of_the_unit_of_work(tmp_path: Path) -> None:
    begin_from(
        [str(as_csv(tmp_path, rows(3, 0.0, time.time())))], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w"))
    )
    samples = [line.data for line in lines(tmp_path / "w", kinds=("sample",))]
    assert all("observed_response_s" in one and "response_s" not in one for one in samples)


@pytest.mark.parametrize(
    ("text", "terms", "words"),
    [
        ("load,throughput\n" + "".join(f"{at % 7 + 1},{at}\n" for at in range(90)), ("load=load",), "no wall clock"),
        ("time,load,throughput\n" + "".join(f"{4e9 + 60 * at},{at + 1},2\n" for at in range(90)), (), "in the future"),
        ("time,jobs\n1764000000,1\n1764000060,2\n", ("load=nothing",), "nothing"),
        ("time,jobs\n1764000000,1\n1764000060,2\n", ("load",), "has no name"),
        ("time,jobs\n1764000000,1\n", ("load=jobs", "load=jobs"), "names the same again"),
        ("time,load\n1764000000,\x1b[2J\n", (), "line 2"),
        ("{", (), "JSON"),
        ("", (), "empty"),
        ("time,load\n1764000000,1\n1764000060,2\n", (), "nothing else"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_in_words_and_nothing_is_written(
    tmp_path: Path, text: str, terms: tuple[str, ...], words: str
) -> None:
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises((SampleError, UsageError), match=words) as refused:
        begin_from([str(file)], mapping_of(terms, ()), WatchPlan("", str(tmp_path / "w")))
    assert refused.value.remedy and "\x1b" not in str(refused.value)
    assert not re.search("--(load|throughput|response|use)", str(refused.value))  # a watch has --as for these
    assert not (tmp_path / "w").exists()


def test_rows_are_not_put_in_front_of_a_watch(tmp_path: Path) -> None:
    file = as_csv(tmp_path, rows(2, 0.0, time.time()))
    begin_from([str(file)], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w")))
    before = sorted((path.name, path.stat().st_size) for path in (tmp_path / "w").iterdir())
    with pytest.raises(RunError, match="already has days of a watch"):
        begin_from([str(file)], mapping_of(AS, ()), WatchPlan("", str(tmp_path / "w")))
    assert before == sorted((path.name, path.stat().st_size) for path in (tmp_path / "w").iterdir())


@pytest.mark.long
def test_the_command_answers_in_words_and_in_json(tmp_path: Path) -> None:
    file = as_csv(tmp_path, rows(14, 0.06, time.time()))
    common = ["--import", str(file), *(word for one in AS for word in ("--as", one)), "--load", "jobs"]
    said = watch(*common, "--folder", str(tmp_path / "w"))
    assert said.returncode == 0, said.stderr
    told = " ".join(said.stdout.split())
    assert "the table cache" in told and "the load gets there at about" in told
    found = watch(*common, "--folder", str(tmp_path / "x"), "--json")
    document = json.loads(found.stdout)
    assert document["schema"] == "loadframe.watch-import/1" and document["model"]["limits"][0]["id"] == USE
    refused = watch("--pid", "1", "--as", "load=jobs")
    assert refused.returncode == 2 and "belong to --import" in refused.stderr


@pytest.mark.long
def test_a_watch_begins_from_what_was_imported(tmp_path: Path) -> None:
    file = as_csv(tmp_path, rows(3, 0.0, time.time() - 600))
    begins = ["--import", str(file), *(word for one in AS for word in ("--as", one))]
    place = str(tmp_path / "w")
    done = watch("--pid", str(os.getpid()), *begins, "--interval", "1s", "--for", "1s", "--folder", place, "--json")
    assert done.returncode == 0, done.stderr
    assert "full at 51" in done.stderr
    answer = json.loads(done.stdout)
    assert [one["id"] for one in answer["model"]["limits"]] == [USE] and answer["gaps"] == 1


def watch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LOADFRAME, "watch", *words], capture_output=True, text=True, timeout=60, check=False)


def imported(limit: dict[str, object], highest_load: float, bend: LoadInterval | None = None) -> str:
    return render_import(
        ImportedWatch(
            folder="w", name="month.csv", load="jobs", rows=9, from_s=0.0, to_s=60.0, model={"limits": [limit]},
            has_response=True, bend=bend, highest_load=highest_load, highest_use={"pool": 0.5}, titles={},
        ),
        width=500,
    )  # fmt: skip


def test_loads_are_written_out_and_a_limit_where_the_load_was_is_said_to_be() -> None:
    limit: dict[str, object] = {"id": "pool", "at_load": {"load": 1234.4, "low": 990.0, "high": 1480.0}, "at_s": None}
    below, there = imported(limit, 1100.0), imported(limit, 1300.0)
    assert "e+" not in below and "jobs up to 1,100" in below
    assert "full at 1,200 jobs (1,000 to 1,500); no proof that the load is on its way there" in below
    assert "the load was there already" in there
    longer = "the response takes 1.5 times as long as at the lowest third of the loads"
    assert f"No load is seen from which on {longer}" in there
    assert f"From 8 jobs (7 to 9) on {longer}" in imported(limit, 1.0, LoadInterval(8, 7, 9))


def test_a_backup_of_each_night_does_not_move_the_load_at_which_a_limit_is_full(tmp_path: Path) -> None:
    """Seen: a disk that is full at 326 told at 420 (360 to 510), as a backup took 93 % at the lowest loads."""
    draw, begun_s = random.Random(5), 86400.0 * (time.time() // 86400 - 13)
    text = ["time,jobs,disk"]
    for at in range(13 * 288):
        hour = at % 288 / 12
        jobs = (20 + 80 * max(0.0, math.sin((hour - 7) / 14 * math.pi))) * math.exp(draw.gauss(0, 0.1))
        disk = 0.02 + 0.003 * jobs * math.exp(draw.gauss(0, 0.05))
        text.append(f"{begun_s + 300 * at:.0f},{jobs:.2f},{0.93 if 2 <= hour < 2.7 else disk:.4f}")
    file = tmp_path / "month.csv"
    file.write_text("\n".join(text))
    found = begin_from([str(file)], mapping_of(("load=jobs", "backups=disk"), ()), ALONE)
    (limit,) = found.model["limits"]
    assert limit["at_load"]["low"] < 326 < limit["at_load"]["high"] < 360
    said = render_import(found, width=500)
    assert "backups was 93 % used on 13 of 13 days, between 02:00 and 02:40 UTC" in said
