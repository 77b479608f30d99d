"""The frame around every experiment: run folder, bench, and what is kept and reported however it ends."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.budget import Budget, TellsRun
from loadframe.bench.checking import check_study
from loadframe.bench.declared import distributions, knobs_of
from loadframe.changes import durable, lists, places
from loadframe.errors import Interrupted, NotRecovered, RunError, UserError
from loadframe.experiments import climbing
from loadframe.experiments.examination import Examined, examine
from loadframe.experiments.profiling import around, looks_for_a_collector, profile_around, profile_at, with_collecting
from loadframe.experiments.reading import conclude, write_answer
from loadframe.experiments.settings_search import SettingsSearch
from loadframe.experiments.stopping import note_fall
from loadframe.machine import check_address_space
from loadframe.masking import secrets_in
from loadframe.model import Capacity, Curve, FleetDrivers, SettingValue, Steps, TargetState
from loadframe.panics import reserve
from loadframe.progress import Progress, Silent, counted
from loadframe.reporting import quality_words, words
from loadframe.runs.folder import REPORT, BenchFacts, Effective, RunFolder
from loadframe.runs.lines import Told, read_host
from loadframe.study import Study


class Executor:
    """Does an experiment's work on this machine. Those of fleets override its methods."""

    def check_study(self, study: Study) -> None:
        check_study(study)

    def bench(self, study: Study, run: RunFolder, say: Callable[[str], None]) -> RealBench:
        """say: called with what the user should read at once."""
        return RealBench(study, run, say)

    def compare_drivers(self, book: Bookkeeping, treatment: str, curve: Curve) -> FleetDrivers | None:
        """All hosts that drive against fewer of them; None without others. StepVoid."""
        return None

    def trials(self, search: SettingsSearch, most: int) -> None:
        """Up to that number as far as the budget goes; each is reported to the search."""
        search.take_here(most)

    def begin_blocks(self, book: Bookkeeping, run: RunFolder, states: climbing.LadderStates, notes: list[str]) -> None:
        """Set what takes the book's blocks. notes: appended for the reader."""

    def capacities(self, book: Bookkeeping, run: RunFolder, study: Study, here: Capacity) -> Capacity:
        return here


HERE = Executor()


def new_run(study: Study, runs: Path, executor: Executor = HERE) -> RunFolder:
    """UserError where the study cannot be carried out."""
    check_address_space()
    executor.check_study(study)
    reserve(RunError)
    resolved = study.resolved()
    run = RunFolder.create(runs, study.study.name, private=any(secrets_in(resolved)))
    run.write_record("study.json", "study", resolved)
    run.write_text("study.toml", study.as_toml())
    run.write_record("host.json", "host", read_host())
    return run


def alone(study: Study) -> Study:
    return study.model_copy(update={"alternative": []})


@contextmanager
def on_bench(
    study: Study, run: RunFolder, progress: Progress | None, executor: Executor = HERE
) -> Iterator[Bookkeeping]:
    with explaining(run), bare_bench(study, run, progress, executor) as book:
        yield book


@contextmanager
def bare_bench(
    study: Study, run: RunFolder, progress: Progress | None, executor: Executor = HERE
) -> Iterator[Bookkeeping]:
    budget = Budget(study.measure.budget, study.measure.window)
    seed = random.SystemRandom().randrange(2**32)
    run_progress = TellsRun(run, progress or Silent(), budget)
    bench = executor.bench(study, run, run_progress.say)
    try:
        with bench:
            facts = BenchFacts(
                bench.version,
                bench.axis_unit,
                seed,
                distributions(study),
                bench.notes,
                bench.work_unit,
                versions=bench.versions,
            )
            run.write_record("bench.json", "bench", facts)
            host, user = run.host(), bench.driver_user
            run.write_record("host.json", "host", replace(host, facts={**host.facts, "load driver": str(user)}))
            if user.stays_root:
                run_progress.say(f"The load driver runs as {user}.")
            book = Bookkeeping(bench, budget, run_progress, random.Random(seed))
            book.next_treatment("as given", bench.start_state)
            climbing.check_alternatives(bench)
            try:
                yield book
            except NotRecovered as error:
                note_fall(book, error)
                raise
            finally:
                if bench.notes or bench.answers:
                    run.write_record("bench.json", "bench", replace(facts, notes=bench.notes, answers=bench.answers))
                run.write_record("conduct.json", "conduct", bench.quality(budget.spent_s(), book.steps, book.repeated))
    finally:
        for outcome in bench.put_back:
            run_progress.say(str(outcome))
        places.note(bench.put_back)
        if (left := durable.failed(bench.put_back)) and (noted := run.quality()) is not None:
            run.write_record("conduct.json", "conduct", replace(noted, not_reverted=left))


def read_back(book: Bookkeeping, treatment: str) -> dict[str, SettingValue]:
    """Go to a state; record and return its effective settings."""
    effective = book.bench.use(treatment)
    book.bench.run.append_line("effective.jsonl", "effective", Effective(treatment, effective))
    return effective


def looked_at(
    book: Bookkeeping,
    number: int,
    treatment: str,
    state: TargetState,
    effective: Mapping[str, SettingValue],
    curve: Curve,
    steps: Steps | None = None,
) -> Examined:
    return examine(
        with_collecting(book.bench.run, book.of(treatment) if steps is None else steps),
        number=number,
        treatment=treatment,
        state=state,
        effective=effective,
        curve=curve,
        target_kind=book.bench.study.target.kind,
        highest_level=book.bench.study.levels[-1],
        free_disk_bytes=book.bench.free_disk_bytes,
        knobs=knobs_of(book.bench.study),
        declared=book.bench.study.target.limit,
        run=book.steps,
    )


def profiled(book: Bookkeeping, examined: Examined) -> Examined:
    round_, wanted, study = examined.round, around(examined)[-1], book.bench.study
    if looks_for_a_collector(study.target.kind, book.of(round_.treatment), wanted.level):
        profile_at(book, wanted, reserve_s=book.remedy_s(study.measure.blocks.min))
    profile_around(book, examined)
    return looked_at(book, round_.number, round_.treatment, round_.state, round_.effective, round_.curve)


@contextmanager
def explaining(run: RunFolder) -> Iterator[None]:
    """However the loop ends early, write down what was measured, and name the place."""
    try:
        yield
    except KeyboardInterrupt:
        run.tell(Told("say", "Stopped by the user."))
        report = _rescue(run)
        raise Interrupted(f"Stopped. {_put_back(run)}{report}") from None
    except UserError as error:
        run.tell(Told("say", error.fact))
        report = _rescue(run)
        noted = run.quality()
        left = [] if noted is None else map(words.sentence, quality_words.not_reverted_sentences(noted.not_reverted))
        error.details = "\n".join(part for part in (error.details, *left, report.strip()) if part)
        raise
    except Exception as error:  # a defect of Loadframe, or a machine out of a resource
        error.add_note(_rescue(run).strip())
        raise


def _put_back(run: RunFolder) -> str:
    own = any(record.run == str(run.path.absolute()) for record in lists.read())
    wanted = ["Not everything could be reverted: `loadframe changes revert` tries again."] if own else []
    wanted += [
        f"Not known to be reverted: {', '.join(settings)} on host {host}; `loadframe changes revert` on host {host} "
        "tries again."
        for host, settings in places.left().items()
    ]
    return " ".join(wanted) or "Everything was reverted; nothing is left running."


def _rescue(run: RunFolder) -> str:
    finished = len(run.steps())
    if not finished:
        return f"\nNo step had finished; the run folder is {run.path}."
    kept = f"{counted(finished, 'finished step')} {'is' if finished == 1 else 'are'}"
    try:
        write_answer(run, conclude(run))
    except Exception as error:  # noqa: BLE001 - what has ended the loop matters more than what keeps a report away
        return f"\n{kept} kept in {run.path} (no report: {error})."
    return f"\n{kept} kept in {run.path}; the report: {run.place(REPORT)}"
