"""The fault matrix: python benchmarks/faults.py [--fault NAME] [--verb NAME] [--quick]

Every fault hits every verb that it can touch: a server, a driver or the recorder is killed, stopped or slow, a disk is
full, gone or read-only, clocks jump, descriptors, processes and memory run short, the network is cut, the command is in
a namespace, has no rights, no control groups, or is not alone. A cell is right where the command ended within its
budget and a minute, with a documented exit code, in words with what to do, where all finished steps can be read and
nothing in them is nonsense, and where nothing stays: no process after it, and after one more command no folder, lease,
control group, shared memory, mount or schema (of a fault that touches neither the command, its folders nor somebody's
server, right after it).
Prints a line for each cell, the matrix, what is wrong and how to see it again; ends with 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from fault_scene import Judgement, Scene, send
from fault_table import BY_NAME, FAULTS, OVER_S, Fault
from fault_verbs import BUDGET_S, USES, VERBS, Verb, study

CELL_S = 240.0
AT_A_TIME = 2
CHILD = "--as-a-cell"
READING = ("report", "curve")
"""Verbs that need a run."""
VERB = {verb.name: verb for verb in VERBS}
QUICK = (("server-killed", "measure-nginx"), ("driver-stopped", "measure-sqlite"), ("runs-full", "measure-sqlite"))

# --- a cell ---


def cell(fault: Fault, verb: Verb, recorded: Path | None) -> Judgement:
    """One fault, one command."""
    with tempfile.TemporaryDirectory(prefix="loadframe-faults-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Scene(folder, BUDGET_S + OVER_S) as scene:
            scene.recorded = recorded
            if fault.needs in ("scratch", "runs", "state"):
                fault.prepare(scene)
            arguments = verb.arguments(scene)
            if fault.needs not in ("scratch", "runs", "state"):
                fault.prepare(scene)
            scene.spare()
            return hit(scene, fault, verb, arguments)


def hit(scene: Scene, fault: Fault, verb: Verb, arguments: list[str]) -> Judgement:
    """Start the command, wait for the moment, strike, and judge what has become of it."""
    began = time.monotonic()
    early = fault.when == "before" or "driver" not in verb.uses
    if early:
        fault.strike(scene)
    scene.start(arguments)
    trouble = "" if early else struck(scene, fault, began + scene.limit_s)
    timely = scene.await_end(time.monotonic() + scene.limit_s)
    seconds = time.monotonic() - began
    if not timely:
        scene.ask_where()
        send(scene.all(), signal.SIGKILL)
        scene.process.wait()
    try:
        fault.relieve(scene)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        trouble = trouble or f"afterwards: {error}"
    judged = scene.judge(codes=fault.codes(verb.name), timely=timely, blinds=fault.blinds, falls=fault.fells_the_target)
    judged.seconds = seconds
    if trouble:
        judged.wrong.insert(0, trouble)
    scene.afterwards(judged, tidy=fault.leaves_all_tidy(verb))
    return judged


def struck(scene: Scene, fault: Fault, until: float) -> str:
    """Strike at the moment; in words, why that was not possible. A driver may have ended a moment before: then the next
    one is waited for."""
    while scene.await_step(until, running=fault.when == "running"):
        try:
            fault.strike(scene)
        except LookupError:
            continue
        except (RuntimeError, OSError) as error:
            return f"the fault: {error}"
        return ""
    return "the fault had no occasion"


@functools.cache
def without_own_mounts(*own: str) -> str:
    """Why no process may have mounts of its own: in a chroot, whose root is no mount, the kernel refuses it."""
    done = subprocess.run([*own, "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def in_child(fault: Fault, verb: Verb, recorded: Path) -> Judgement:
    """A cell in a process of its own, with mounts of its own."""
    if (why := fault.impossible()) != "":
        return Judgement(said=why)
    own = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    if own and (why := without_own_mounts(*own)):
        return Judgement(said=why)
    command = [*own, sys.executable, __file__, CHILD, fault.name, verb.name, str(recorded)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = child.communicate(timeout=CELL_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate()
        return Judgement(wrong=[f"the cell did not end within {CELL_S:.0f} s"], output=err)
    try:
        return Judgement(**json.loads(out.splitlines()[-1]))
    except (IndexError, ValueError):
        return Judgement(wrong=["the cell itself failed"], output=err + out)


def record(folder: Path) -> Path:
    """A run for the verbs that read one."""
    folder.chmod(0o755)
    with Scene(folder, 60.0) as scene:
        process = scene.command(["measure", study(scene, "sqlite"), "--runs", "runs", "--json"], (), {}, "said")
        if process.wait(60):
            raise RuntimeError((folder / "said.err").read_text())
    return next(scene.place("runs").iterdir())


# --- the matrix ---


def chosen(options: argparse.Namespace) -> list[tuple[Fault, Verb]]:
    """The cells that are asked for."""
    if options.quick:
        return [(BY_NAME[fault], VERB[verb]) for fault, verb in QUICK]
    cells = []
    for fault in FAULTS if options.fault is None else (BY_NAME[options.fault],):
        verbs = [VERB[name] for name in fault.verbs] if options.verb is None else [VERB[options.verb]]
        every = [verb for verb in VERBS if fault.needs in verb.uses]
        cells += [(fault, verb) for verb in (every if options.all and options.verb is None else verbs) if verb in every]
    return cells


def word(fault: Fault, verb: Verb, found: dict[tuple[str, str], Judgement]) -> str:
    if fault.needs not in verb.uses:
        return "."
    judged = found.get((fault.name, verb.name))
    if judged is None:
        return "-"
    return "n/a" if judged.code is None and not judged.wrong else "WRONG" if judged.wrong else "ok"


def table(found: dict[tuple[str, str], Judgement]) -> str:
    """Faults by verbs, the verbs by number."""
    verbs = [verb for verb in VERBS if any(name == verb.name for _, name in found)]
    faults = [fault for fault in FAULTS if any(name == fault.name for name, _ in found)]
    rows = [["", *(str(number) for number in range(1, len(verbs) + 1))]]
    rows += [[fault.name, *(word(fault, verb, found) for verb in verbs)] for fault in faults]
    lines = [
        "".join(
            f"{row[0]:24}",
        )
        + "".join(f"{each:>6}" for each in row[1:])
        for row in rows
    ]
    legend = ", ".join(f"{number} {verb.name}" for number, verb in enumerate(verbs, 1))
    reasons = {fault.needs for fault in faults if any(fault.needs not in verb.uses for verb in verbs)}
    lines += [
        "",
        legend,
        "n/a: not possible here. -: it goes by the same code as the others of its row; --verb takes it.",
    ]
    lines += [
        ".: it cannot be touched, as it is not true that " + " / ".join(USES[need] for need in USES if need in reasons)
    ]
    return "\n".join(lines)


def main() -> int:
    """The matrix, or some of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=BY_NAME, metavar="NAME", help=", ".join(BY_NAME))
    parser.add_argument("--verb", choices=VERB, metavar="NAME", help=", ".join(VERB))
    parser.add_argument("--quick", action="store_true", help="a slice of it")
    parser.add_argument("--all", action="store_true", help="every verb that a fault touches")
    parser.add_argument("--at-a-time", type=int, default=AT_A_TIME)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    found: dict[tuple[str, str], Judgement] = {}
    with (
        tempfile.TemporaryDirectory(prefix="loadframe-faults-run-", dir="/var/tmp") as name,
        ThreadPoolExecutor(options.at_a_time) as pool,
    ):
        cells = chosen(options)
        recorded = record(Path(name)) if any(verb.name in READING for _, verb in cells) else Path()
        for (fault, verb), judged in zip(cells, pool.map(lambda each: in_child(*each, recorded), cells), strict=True):
            found[fault.name, verb.name] = judged
            show(fault, verb, judged, verbose=len(cells) == 1)
    print(f"\n{table(found)}\n")
    return conclude(found, time.monotonic() - began)


def show(fault: Fault, verb: Verb, judged: Judgement, *, verbose: bool) -> None:
    if judged.code is None and not judged.wrong:
        print(f"{fault.name:24} {verb.name:26} not possible here: {judged.said}", flush=True)
        return
    steps = f"{judged.readable}/{judged.finished}"
    took = f"{judged.code!s:>4} {judged.seconds:5.1f} s {steps:>5} steps"
    print(f"{fault.name:24} {verb.name:26} {took}  {judged.said[:90]}")
    for words in judged.wrong:
        print(f"{'':24} WRONG: {words}")
    if verbose or (judged.wrong and os.environ.get("FAULTS_VERBOSE")):
        print(judged.output)
    sys.stdout.flush()


def conclude(found: dict[tuple[str, str], Judgement], seconds: float) -> int:
    """What is wrong, and the counts."""
    wrong = {names: judged for names, judged in found.items() if judged.wrong}
    for (fault, verb), judged in wrong.items():
        print(f"{fault} x {verb}: {'; '.join(judged.wrong)}")
        print(f"    python benchmarks/faults.py --fault {fault} --verb {verb}")
    counts = Counter(
        "wrong" if judged.wrong else "not possible here" if judged.code is None else "right"
        for judged in found.values()
    )
    said = ", ".join(f"{counts[words]} {words}" for words in ("right", "wrong", "not possible here"))
    print(f"{len(found)} cells: {said}; {seconds:.0f} s")
    return 1 if wrong else 0


def as_a_cell(fault: str, verb: str, recorded: str) -> None:
    """What `in_child` talks to."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(json.dumps(asdict(cell(BY_NAME[fault], VERB[verb], Path(recorded)))))


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        as_a_cell(*sys.argv[2:])
    else:
        sys.exit(main())
