"""A study file is read as its author meant it, or refused with the line, the value and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import StudyError, UsageError
from loadframe.study import load, parse, validate
from loadframe.study.fields import duration_s, rate_bytes_per_s, show_duration, show_size, size_bytes, spread
from loadframe.study.reading import find_line

FULL = """\
[study]
name = "farm"
question = "Why?"

[target]
kind = "mariadb"
[target.settings]
table_open_cache = 64

[cage]
cpus = "0-1"
open_files = 1024
[cage.driver]
cpus = "1"

[workload]
kind = "render-farm"
[workload.options]
tables_per_job = 5

[load]
axis = "active_jobs"
levels = { from = 5, to = 2000, count = 9, growth = "geometric" }

[objective]
maximise = "throughput"
within = { latency_p95_ms = 50 }

[measure]
warmup = "2s"
window = "3s"
blocks = { min = 3, max = 12 }
precision = 0.05
budget = "10m"

[remedies]
allow = ["target", "process"]
durability = "keep"
"""

PARTIAL = """\
[study]
name = "queue"
question = "How many?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [4, 1, 2]
"""


def test_a_full_study_is_read_as_written() -> None:
    study = parse(FULL)
    assert study.target.settings == {"table_open_cache": 64}
    assert study.cage.open_files == 1024
    assert study.cage.driver.cpus == "1"
    assert study.levels[0] == 5
    assert study.levels[-1] == 2000
    assert len(study.levels) == 9
    assert study.objective.within.latency_p95_ms == 50
    assert (study.measure.warmup, study.measure.window, study.measure.budget) == (2.0, 3.0, 600.0)


def test_a_partial_study_gets_careful_defaults() -> None:
    study = parse(PARTIAL)
    assert study.levels == (1, 2, 4)
    assert study.measure.warmup is None
    assert study.measure.blocks.min >= 3
    assert study.remedies.durability == "keep"


@pytest.mark.parametrize("text", [FULL, PARTIAL])
def test_the_resolved_study_is_the_same_study(text: str) -> None:
    study = parse(text)
    assert validate(study.resolved()) == study
    assert parse(study.as_toml()) == study


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('window = "3s"', 'windw = "3s"', ["measure.windw", "'window'"]),
        ('window = "3s"', "window = 3", ["3", "unit", '"3s"']),
        ('window = "3s"', 'window = "10ms"', ["too short", "300ms"]),
        ('budget = "10m"', 'budget = "10 parsecs"', ["10 parsecs", '"10m"']),
        ("from = 5", "from = 5000", ["5000", "2000", "below"]),
        ("to = 2000", "to = inf", ["inf"]),
        ("to = 2000", "to = 1e300", ["1000000000"]),
        ("count = 9", "cnt = 9", ["cnt", "count"]),
        ('growth = "geometric"', 'growth = "wild"', ["wild", "geometric"]),
        ("levels = { from", "levels = [] # { from", ["no levels"]),
        ("levels = { from", "levels = [0] # { from", ["level 0", "positive"]),
        ("levels = { from", "levels = [3, 3] # { from", ["twice"]),
        ("levels = { from", "levels = [true] # { from", ["true or false"]),
        ('name = "farm"', 'name = "My Farm"', ["My Farm", "dashes"]),
        ("[load]", "[laod]", ["laod", "'load'"]),
        ('warmup = "2s"', 'warmup = "soon"', ["soon"]),
        ("min = 3, max = 12", "min = 5, max = 3", ["max = 3", "min = 5"]),
        ('durability = "keep"', 'durability = "maybe"', ["maybe", "relax"]),
        ('allow = ["target", "process"]', 'allow = ["hosts"]', ["hosts", "process"]),
        ("open_files = 1024", "open_files = 3", ["3", "32"]),
        ("open_files = 1024", "memory = 2000", ["memory", "2000", '"512MiB"']),
        ("open_files = 1024", 'memory = "2 parsecs"', ["2 parsecs", '"2GB"']),
        ("open_files = 1024", 'memory = "1kB"', ["cage.memory", "1048576"]),
        ("open_files = 1024", 'read_rate = "40MB"', ["40MB", '"40MB/s"']),
        ("open_files = 1024", "write_iops = 0", ["cage.write_iops", "1"]),
        ("open_files = 1024", 'cpu_quota = "half"', ["half", "50%"]),
        ("open_files = 1024", "cpu_quota = 0", ["cage.cpu_quota", "0.01"]),
        ("open_files = 1024", "processes = -1", ["cage.processes"]),
        ("open_files = 1024", 'memry = "2GiB"', ["memry", "memory"]),
    ],
)
def test_bad_values_are_refused_with_line_value_and_what_is_right(old: str, new: str, words: list[str]) -> None:
    line = FULL[: FULL.index(old)].count("\n") + 1
    with pytest.raises(StudyError) as caught:
        parse(FULL.replace(old, new), name="farm.toml")
    assert f"farm.toml, line {line}:" in caught.value.fact
    for word in words:
        assert word in caught.value.fact
    assert caught.value.remedy


CAGED = """
[cage]
cpu_quota = "50%"
memory = "512MiB"
read_rate = "40MB/s"
write_iops = 100
processes = 200
open_files = 1024
[cage.driver]
cpu_quota = 2
[cage.shard]
memory = "1500B"
"""


def test_a_cage_is_read_in_its_units_for_each_component() -> None:
    study = parse(PARTIAL + CAGED.replace("1500B", "2GB"))
    assert study.cage.process_limits() == {"RLIMIT_NOFILE": 1024}
    assert study.cage.group_limits() == {
        "cpu.max": 50_000,
        "memory.max": 512 << 20,
        "pids.max": 200,
        "io.rbps": 40_000_000,
        "io.wiops": 100,
    }
    assert study.cage.components["driver"].group_limits() == {"cpu.max": 200_000}
    assert study.cage.components["shard"].group_limits() == {"memory.max": 2_000_000_000}
    assert parse(study.as_toml()) == study
    assert validate(study.resolved()) == study


@given(st.integers(1, 2**50))
def test_sizes_survive_being_shown(size: int) -> None:
    assert size_bytes(show_size(size)) == size
    assert rate_bytes_per_s(show_size(size) + "/s") == size


def test_a_step_must_fit_into_the_budget() -> None:
    with pytest.raises(StudyError, match="a single step takes 5 s, more than the budget of 4 s"):
        parse(FULL, ["measure.budget=4s"])


def test_a_single_cpu_may_be_a_number() -> None:
    assert parse(PARTIAL, ["cage.cpus=1"]).cage.cpus == "1"


def test_a_file_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(StudyError, match="larger than"):
        load(Path("/dev/zero"))


def test_what_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(StudyError, match="line 2"):
        parse("[study]\nname = yes\n")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no study"):
        load(tmp_path / "none.toml")
    with pytest.raises(StudyError, match="is a folder"):
        load(tmp_path)


def test_overrides_replace_any_key_in_order() -> None:
    study = parse(
        PARTIAL,
        ["target.settings.journal_mode=wal", "load.levels=[1, 3]", "measure.window=500ms", "measure.window=700ms"],
    )
    assert study.target.settings == {"journal_mode": "wal"}
    assert study.levels == (1, 3)
    assert study.measure.window == pytest.approx(0.7)


def test_a_bad_override_is_blamed_on_the_override_not_on_a_line() -> None:
    with pytest.raises(StudyError) as caught:
        parse(PARTIAL, ["measure.window=never"])
    assert caught.value.fact.startswith("--set measure.window:")
    with pytest.raises(UsageError, match=r"section\.key=value"):
        parse(PARTIAL, ["window"])
    with pytest.raises(StudyError, match="is a value"):
        parse(PARTIAL, ["study.name.first=x"])


def test_lines_are_found_in_headers_keys_and_inline_tables() -> None:
    lines = FULL.splitlines()
    for key, text in (("cage.driver", "[cage.driver]"), ("target.settings.unknown", "[target.settings]")):
        assert find_line(FULL, key) == lines.index(text) + 1
    spread_line = next(number for number, line in enumerate(lines, 1) if line.startswith("levels"))
    assert find_line(FULL, "load.levels.count") == spread_line
    assert find_line(FULL, "nothing.here") is None


@given(st.text(max_size=200))
def test_any_text_is_a_study_or_a_study_error(text: str) -> None:
    with pytest.raises(StudyError):
        parse(text)


@given(st.floats(min_value=0.001, max_value=1e5))
def test_durations_survive_being_shown(seconds: float) -> None:
    assert duration_s(show_duration(seconds)) == pytest.approx(seconds, rel=1e-4)


@given(st.integers(1, 1000), st.integers(0, 5000), st.integers(1, 40), st.sampled_from(["geometric", "linear"]))
def test_levels_rise_and_keep_their_ends(low: int, more: int, count: int, growth: str) -> None:
    levels = spread(low, low + more, count, growth, whole=True)
    assert list(levels) == sorted(set(levels))
    assert levels[0] == low
    assert count == 1 or levels[-1] == low + more


@pytest.mark.parametrize(("levels", "up_to", "left"), [("[1, 2, 4]", 1, "1 of 3"), ("[1, 2, 4]", 4, "3 of 3")])
def test_there_must_be_levels_to_forecast_from_and_others_to_forecast(levels: str, up_to: int, left: str) -> None:
    text = FULL.replace('levels = { from = 5, to = 2000, count = 9, growth = "geometric" }', f"levels = {levels}")
    assert parse(text.replace("[load]", "[load]\nforecast_up_to = 2")).load.forecast_up_to == 2
    with pytest.raises(StudyError, match=f"leaves {left} levels"):
        parse(text.replace("[load]", f"[load]\nforecast_up_to = {up_to}"))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("measure.budget=" + "9" * 400 + "s", "longer than a year"),
        ("cage.memory=" + "9" * 400 + "TiB", "is more than"),
        ("cage.driver.write_rate=" + "9" * 400 + "TiB/s", "is more than"),
        ("load.levels={ from = 1e-320, to = 1, count = 3 }", "load.levels.from"),
        ("objective.within.latency_p95_ms=inf", "not a finite number"),
        ("target.settings.x=1e400", "not a finite number"),
        ("target.settings.x=" + "9" * 30, "64 bits"),
        ("study.question=\x1b[2J", "U+001B"),
        ("study.question=\udcff", "U+DCFF"),
        ("study.name" + ".a" * 1000 + "=1", "section.key=value"),
        ("load.levels=" + "[" * 3000, "load.levels"),
        ("load.levels=[" + "".join(f"'x{number}'," for number in range(5000)) + "]", "and 4,980 more"),
    ],
)
def test_what_no_study_can_have_is_refused_in_few_words(override: str, words: str) -> None:
    with pytest.raises((StudyError, UsageError), match=words.replace("+", r"\+")) as caught:
        parse(PARTIAL, [override])
    assert len(str(caught.value)) < 5000


def test_a_value_of_two_lines_is_not_cut_to_its_first() -> None:
    assert parse(PARTIAL, ["study.question=1\nname = 2"]).study.question == "1\nname = 2"
