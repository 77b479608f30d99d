"""Sampled steps are extra ones, taken only where the budget has room, and every profile can be computed again from the
run folder, also where files of it were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import RunError, WorkloadError
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.profiling import profile_after, profile_around, profiles_of, write_speedscope
from loadframe.experiments.sweep import sweep
from loadframe.model import ProfiledStep, ProfileSource, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import parse

Simulated = Callable[..., Bookkeeping]


def cliff(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return (3000.0 if level > 12.8 else 9000.0), {"system.cpu.count": 2.0}


def flat(state: TargetState, level: float) -> tuple[float, dict[str, float]]:
    return 5000.0, {"system.cpu.count": 2.0}


def examined(book: Bookkeeping) -> Examined:
    curve = sweep(book, "A", round_number=1)
    return examine(
        book.of("A"),
        number=1,
        treatment="A",
        state=book.bench.start_state,
        effective=book.bench.use("A"),
        curve=curve,
        target_kind="mariadb",
        highest_level=book.bench.study.levels[-1],
    )


@pytest.fixture
def book(simulated: Simulated) -> Callable[..., Bookkeeping]:
    """A book whose bench notes what it was asked to sample, or fails at that."""

    def make(model: object, *overrides: str, fails: bool = False) -> Bookkeeping:
        def take_profile(*_: object, **__: object) -> ProfiledStep:
            raise WorkloadError("the driver died")

        made = simulated(model, *overrides)
        made.bench.declare("C", "kept", made.bench.start_state)
        if fails:
            made.bench.take_profile = take_profile  # type: ignore[method-assign]
        return made

    return make


def taken(book: Bookkeeping) -> list[tuple[str, str, float]]:
    return [(step.place, step.treatment, step.level) for step in book.bench.run.profiled() if not step.missing]


def test_one_step_below_the_bend_and_one_past_it(book: Callable[..., Bookkeeping]) -> None:
    made = book(cliff)
    found = examined(made)
    steps = list(made.steps)
    profile_around(made, found)
    (below, past) = taken(made)
    assert below[:2] == ("below", "A")
    assert past[:2] == ("past", "A")
    assert below[2] <= 12.8 < past[2]
    assert made.steps == steps, "a sampled step is in no curve"
    profile_after(made, found, "A")
    assert len(taken(made)) == 2
    profile_after(made, found, "C")
    assert taken(made)[-1] == ("past", "C", past[2])


def test_where_nothing_bends_the_ends_are_sampled(book: Callable[..., Bookkeeping]) -> None:
    made = book(flat)
    profile_around(made, examined(made))
    assert taken(made) == [("lowest", "A", 4.0), ("highest", "A", 32.0)]


def test_a_short_window_is_made_long_enough_for_samples(book: Callable[..., Bookkeeping]) -> None:
    made = book(flat, "measure.window=600ms")
    profile_around(made, examined(made))
    assert all(step.seconds == 2.0 for step in made.bench.run.profiled())


def test_switched_off_there_is_not_a_word_of_it(book: Callable[..., Bookkeeping]) -> None:
    made = book(cliff, "measure.profile=off")
    profile_around(made, examined(made))
    assert made.bench.run.profiled() == []


def test_time_for_a_remedy_goes_before_and_what_was_left_out_comes_last(book: Callable[..., Bookkeeping]) -> None:
    made = book(cliff, "measure.budget=75s")
    found = examined(made)
    profile_around(made, found)
    assert taken(made) == []
    made.budget.total_s += 1000
    profile_after(made, found, "C")
    assert [row[:2] for row in taken(made)] == [("past", "C"), ("below", "A"), ("past", "A")]


def test_without_room_in_the_budget_it_is_said(book: Callable[..., Bookkeeping]) -> None:
    made = book(cliff, "measure.budget=75s")
    found = examined(made)
    made.budget.total_s = made.budget.spent_s() + 1
    profile_after(made, found, "A")
    assert taken(made) == []
    _, missing = profiles_of(made.bench.run)
    assert len(missing) == 2
    assert all("measure.budget" in one.how_to_get_it for one in missing)


def test_a_sampled_step_that_fails_does_not_end_the_run(book: Callable[..., Bookkeeping]) -> None:
    made = book(cliff, fails=True)
    found = examined(made)
    profile_around(made, found)
    profile_after(made, found, "A")
    _, missing = profiles_of(made.bench.run)
    assert [one.how_to_get_it for one in missing] == ["it failed: the driver died"] * 2, "and is tried once"


# --- the run folder ---


def sampled(run: RunFolder, number: int, place: str, treatment: str, text: str) -> None:
    file = f"{number:02d}-{treatment}-{place}.target.cpu.folded"
    step = ProfiledStep(
        place=place,  # type: ignore[arg-type]
        treatment=treatment,
        level=8.0 if place == "below" else 64.0,
        seconds=2.0,
        requests=1000,
        throughput=500.0,
        sources=(ProfileSource("cpu", "target", file, 100, 100.0, 2.0),),
    )
    run.add_profiled(step)
    (run.path / "profiles" / file).write_text(text)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = RunFolder.create(tmp_path, "sampled")
    sampled(made, 1, "below", "A", "m;work 90\n")
    sampled(made, 2, "past", "A", "m;work 100\nm;open_table;path_openat_[k] 100\n")
    sampled(made, 3, "past", "B", "m;work 95\nm;open_table;path_openat_[k] 10\n")
    return made


def test_profiles_are_computed_again_from_the_folder(run: RunFolder) -> None:
    (below, past, after), missing = profiles_of(RunFolder.open(run.path))
    assert missing == ()
    assert below.against is None
    assert past.against is not None
    assert (past.against.place, past.against.treatment, past.against.level) == ("below", "A", 8.0)
    assert {one.id: one.change for one in past.classes} == {"user": None, "files": pytest.approx(100.0)}
    assert after.against is not None
    assert (after.against.place, after.against.treatment) == ("past", "A")
    assert {one.id: one.change for one in after.classes} == {"user": None, "files": pytest.approx(0.1)}


def test_the_order_in_which_they_were_taken_does_not_matter(run: RunFolder) -> None:
    """What there was no time for at first is taken last."""
    path = run.path / "profiles/steps.jsonl"
    found, _ = profiles_of(run)
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    again, _ = profiles_of(run)
    assert again == found


def test_lost_and_damaged_files_cost_only_themselves(run: RunFolder) -> None:
    (run.path / "profiles/01-A-below.target.cpu.folded").unlink()
    damaged = run.path / "profiles/03-B-past.target.cpu.folded"
    damaged.write_bytes(damaged.read_bytes() + b"\xff\xffgarbage\n")
    with (run.path / "profiles/steps.jsonl").open("a") as file:
        file.write('{"schema":"loadframe.profile/1","pla')
    profiles, missing = profiles_of(RunFolder.open(run.path))
    assert [(one.place, one.treatment) for one in profiles] == [("past", "A"), ("past", "B")]
    said = " ".join(f"{one.what}: {one.how_to_get_it}" for one in missing)
    assert "01-A-below.target.cpu.folded" in said
    assert "1 of its lines are damaged" in said


def test_a_file_s_name_cannot_lead_out_of_the_folder(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("m;secret 100\n")
    outside = ProfileSource("cpu", "target", "../../secret", 100, 100.0, 2.0)
    first = run.profiled()[0]
    run.add_profiled(replace(first, sources=(outside,)))
    profiles, _ = profiles_of(run)
    assert all("secret" not in box.name for one in profiles for box in one.flame)


def test_speedscope_is_refused_without_profiles(tmp_path: Path, run: RunFolder) -> None:
    write_speedscope(run, tmp_path / "out.json")
    assert "path_openat_[k]" in (tmp_path / "out.json").read_text()
    with pytest.raises(RunError, match="has no profiles"):
        write_speedscope(RunFolder.create(tmp_path, "bare"), tmp_path / "none.json")
    with pytest.raises(RunError, match="cannot be written"):
        write_speedscope(run, tmp_path / "nowhere" / "out.json")


# --- for real ---

STUDY = """
[study]
name = "sampled"
question = "?"
[target]
kind = "{target}"
[workload]
kind = "{workload}"
[load]
axis = "{axis}"
levels = [4]
[measure]
window = "500ms"
budget = "60s"
"""


def sample_for_real(tmp_path: Path, target: str, workload: str, axis: str) -> tuple[RunFolder, ProfiledStep]:
    study = parse(STUDY.format(target=target, workload=workload, axis=axis))
    run = RunFolder.create(tmp_path, "sampled")
    with RealBench(study, run) as bench:
        bench.declare("A", "as given", bench.start_state)
        done = bench.take_profile("highest", treatment="A", level=4.0, window_s=1.0)
    return run, done


@pytest.mark.long
def test_an_embedded_target_is_sampled_where_it_lives(tmp_path: Path) -> None:
    run, done = sample_for_real(tmp_path, "sqlite", "job-queue", "concurrency")
    assert run.steps() == []
    assert run.profiled() == [done]
    assert {source.component for source in done.sources if source.kind == "threads"} == {"target"}
    profiles, missing = profiles_of(run)
    assert done.requests > 0
    assert any(one.kind == "cpu" and one.component == "target" for one in profiles) or missing
    looked = next(one for one in profiles if one.kind == "threads")
    assert sum(one.amount for one in looked.classes) > 3.9, "one thread per worker at least"


@pytest.mark.long
@pytest.mark.server
def test_a_server_and_its_driver_are_told_apart(tmp_path: Path) -> None:
    run, done = sample_for_real(tmp_path, "mariadb", "render-farm", "active_jobs")
    assert {source.component for source in done.sources if source.kind == "threads"} == {"target", "driver"}
    profiles, missing = profiles_of(run)
    cpu = [one for one in profiles if (one.kind, one.component) == ("cpu", "target")]
    assert cpu or missing
    for one in cpu:
        names = {box.name for box in one.flame}
        assert "mariadbd" in names
        assert names & {"mysql_execute_command", "do_command", "dispatch_command", "[mariadbd]"}
        assert one.unresolved_share < 1
