"""One trial on a host: `python -P -m loadframe_fleet.trial` reads a question from stdin, takes the steps on a bench of
its own, and writes the answer to stdout. Once stdin is closed or silent for LEASE_S, it puts everything back and
answers nothing."""

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from loadframe.analysis.objective import clearly_missed
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import Interrupted, TargetError, UserError, WorkloadError
from loadframe.experiments import searching
from loadframe.experiments.frame import alone, bare_bench, new_run
from loadframe.experiments.side_by_side import START
from loadframe.experiments.stopping import UNFIT
from loadframe.host.leases import Lease
from loadframe.host.processes import parse_cpus
from loadframe.host.signals import ignore
from loadframe.kinds import registry as targets
from loadframe.lab import investigate
from loadframe.model import LoadInterval, Step, StepRequest
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import decode, encode
from loadframe.runs.lines import Treatment
from loadframe.study import Study, validate
from loadframe_fleet.agent import report
from loadframe_fleet.wire import LEASE_S, Closed, Lines, Message, Silent, WireError, own_output, written
from loadframe_fleet.worker import GIVEN_UP_S, clean_up

ASKED_WITHIN_S = 30.0


def taken(asked: Message) -> Message:
    """The answer to a question: steps, capacity or investigation; failed: why there is none of this study; error: why
    this host cannot carry it out. asked: study (as resolved), host, folder, cpus; for steps (alike.py) states, order
    (treatment and level), block, round, step (its purpose), floors; or capacity (guess, changed); or investigate."""
    if asked.get("cpus"):
        os.sched_setaffinity(0, parse_cpus(asked["cpus"]))
    if asked.get("folder") and Path(asked["folder"]).is_dir():
        os.chdir(asked["folder"])
    clean_up()
    study = targets.canonical(validate(asked["study"], name="the coordinator's study"))
    what = f"trial of study {study.study.name} on host {asked['host']}"
    with Lease.acquire(what, visible=study.as_toml()) as lease:
        runs = lease.folder / "runs"
        if asked.get("investigate"):
            return _investigated(study, runs)
        run = new_run(alone(study), runs)
        with bare_bench(alone(study), run, None) as book:
            book.tries_remedies = False
            answer = _capacity(book, asked["capacity"]) if "capacity" in asked else _steps(book, asked)
        run.close()
        return answer


def _steps(book: Bookkeeping, asked: Message) -> Message:
    book.warms, study = True, book.bench.study
    for line in asked["states"]:
        treatment = decode("treatment", str(line).encode(), Treatment, where="the coordinator's question")
        book.bench.declare(treatment.name, treatment.title, treatment.state, treatment.kind or None)
    floors = {float(level): float(value) for level, value in asked["floors"]}
    steps, failed, name = list[Step](), "", START
    try:
        for name, level in asked["order"]:
            if asked["floors"] and (
                clearly_missed(searching.asked_of_settings(study), steps)
                or any(step.throughput < floors.get(step.level, 0.0) for step in steps)
            ):
                break
            request = StepRequest(str(name), float(level), asked["round"], int(asked["block"]), purpose=asked["step"])
            steps.append(book.take(request))
    except UNFIT as error:
        if name == START:
            raise
        failed = error.fact
        book.bench.recover(START)
    return {"steps": [encode("step", step).decode() for step in steps], "failed": failed}


def _capacity(book: Bookkeeping, message: Message) -> Message:
    study = book.bench.study
    guess = LoadInterval(*map(float, message["guess"])) if message["guess"] else None
    settings = searching.settings_of(study, guess=guess)
    try:
        capacity = searching.find(book, settings, searching.objective_of(study))
    except (TargetError, WorkloadError) as error:
        if not message["changed"]:
            raise
        return {"failed": error.fact}
    return {"capacity": encode("capacity-record", capacity).decode(), "failed": ""}


def _investigated(study: Study, runs: Path) -> Message:
    """An error is the answer for this study: the host may be able to carry out others."""
    try:
        investigation = investigate(study, runs)
    except Interrupted:
        raise KeyboardInterrupt from None
    except UserError as error:
        return {"failed": error.fact}
    run = RunFolder.open(Path(investigation.run))
    try:
        steps = [encode("step", step).decode() for step in run.steps()]
    finally:
        run.close()
    return {"investigation": encode("investigation-record", investigation).decode(), "steps": steps, "failed": ""}


def _end_with_owner(lines: Lines) -> None:
    """Runs in another thread until the pipe is closed, or silent; then the main thread is interrupted, and unwinds."""
    with suppress(OSError, Closed, Silent, WireError):
        while True:
            lines.line(LEASE_S)
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(GIVEN_UP_S)
    os._exit(1)


def main() -> None:
    for number in (signal.SIGHUP, signal.SIGTERM):  # it only ends with the pipe
        signal.signal(number, ignore)
    sink = own_output()
    try:
        lines = Lines(0)
        asked = lines.message(ASKED_WITHIN_S)
        threading.Thread(target=_end_with_owner, args=(lines,), daemon=True).start()
        answer = taken(asked)
    except KeyboardInterrupt:
        report("What has asked for this trial is gone.")
        sys.exit(1)
    except UserError as error:
        answer = {"error": error.fact, "remedy": error.remedy}
    except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator reports it
        answer = {"error": f"{type(error).__name__}: {error}"[:2000], "remedy": ""}
    data = written(answer)
    with suppress(OSError):
        while data:
            data = data[os.write(sink, data) :]
    os._exit(0)


if __name__ == "__main__":
    main()
