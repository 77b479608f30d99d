"""A slice of the fault matrix (benchmarks/faults.py), and what judges its cells."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import fault_scene
import faults
from loadframe.model import Step


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize(("fault", "verb"), faults.QUICK)
def test_what_was_finished_is_kept_and_nothing_stays(fault: str, verb: str) -> None:
    judged = faults.in_child(faults.BY_NAME[fault], faults.VERB[verb], Path())
    if judged.code is None and not judged.wrong:
        pytest.skip(judged.said)
    assert judged.wrong == [], judged.output
    assert judged.finished >= 1
    assert judged.remedy or judged.code == 0, "an answer names the fall of the target; an error says what to do"


def test_every_verb_of_a_fault_is_touched_by_it() -> None:
    for fault in faults.FAULTS:
        for verb in fault.verbs:
            assert fault.needs in faults.VERB[verb].uses, (fault.name, verb)


def test_times_and_rates_that_run_backwards_are_nonsense(make_step: Callable[..., Step]) -> None:
    step = make_step(1)
    assert fault_scene.nonsense(step) == []
    for wrong in (
        replace(step, window_end_s=step.window_start_s - 1),
        replace(step, metrics={"target.cpu.cores": -0.1}),
        replace(step, metrics={"target.cpu.cores": float("nan")}),
        replace(step, throughput=-1.0),
    ):
        assert len(fault_scene.nonsense(wrong)) == 1


def test_a_scene_sees_what_stays(tmp_path: Path) -> None:
    with fault_scene.Scene(tmp_path, 10.0) as scene:
        scene.spare()
        assert scene.stayed() == []
        (scene.place("scratch") / "loadframe-1").mkdir()
        (scene.place("state") / "leases").mkdir()
        (scene.place("state") / "leases/1.json").write_text("{}")
        pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        assert len(scene.stayed()) == 3
    assert os.waitpid(pid, 0)[1] != 0


def test_a_scene_adopts_orphans_only_while_it_lasts(tmp_path: Path) -> None:
    with fault_scene.Scene(tmp_path, 10.0):
        assert adopts_orphans()
    assert not adopts_orphans()


def adopts_orphans() -> bool:
    found = ctypes.c_int()
    ctypes.CDLL(None).prctl(37, ctypes.byref(found), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
    return bool(found.value)
