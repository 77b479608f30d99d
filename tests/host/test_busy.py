"""Programs by the CPU time that they used between two looks; of a recorded tree, and of this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from loadframe.system import kernel
from waiting import await_that


def process(root: Path, pid: int, program: str, parent: int, *, own: int, children: int = 0, began: int = 5) -> None:
    """PID/stat as proc(5) has it: utime, stime, cutime and cstime are the fields 14 to 17, starttime is 22."""
    (root / str(pid)).mkdir(exist_ok=True)
    zeros = " 0" * 9
    fields = f"S {parent}{zeros} {own} 0 {children} 0 20 0 1 0 {began}"
    (root / str(pid) / "stat").write_text(f"{pid} ({program}) {fields} 0 0\n")


def test_programs_outside_the_study_by_what_they_used(tmp_path: Path) -> None:
    process(tmp_path, 1, "systemd", 0, own=0)
    process(tmp_path, 10, "make", 1, own=100, children=50)
    process(tmp_path, 20, "kworker/u4:1", 2, own=0)
    process(tmp_path, 30, "app.py", 1, own=0)
    process(tmp_path, 31, "a (worker) of it", 30, own=0)
    (tmp_path / "self").mkdir()
    first = kernel.spent(tmp_path)
    second = kernel.PER_SECOND
    process(tmp_path, 1, "systemd", 0, own=0, children=90 * second)
    process(tmp_path, 10, "make", 1, own=100, children=50 + 2 * second)
    process(tmp_path, 20, "kworker/u4:1", 2, own=second)
    process(tmp_path, 31, "a (worker) of it", 30, own=9 * second)
    process(tmp_path, 40, "cc1plus", 10, own=second // 2, began=7)
    assert kernel.between(first, kernel.spent(tmp_path), 2.0, {30}) == {"make": 1.0, "kworker": 0.5, "cc1plus": 0.25}


def test_a_program_that_computes_on_this_machine_is_among_them() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        try:
            first, began = kernel.spent(), time.monotonic()
            own = next(key for key in first if key[0] == spinning.pid)
            await_that(lambda: kernel.spent()[own].ticks > first[own].ticks, "it used the CPU", of=spinning)
            used = kernel.between(first, kernel.spent(), time.monotonic() - began, set())
            assert used.get(first[own].program, 0) > 0
        finally:
            spinning.kill()
