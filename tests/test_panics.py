"""What a library in another language says when it has no memory reaches the user as words with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest
import zstandard

from loadframe.errors import RecordingError, RunError
from loadframe.model import Step
from loadframe.panics import in_words
from loadframe.reporting import vega
from loadframe.runs import folder
from loadframe.runs.folder import RunFolder

Panic = polars.exceptions.PanicException


def panicking(*_: object) -> None:
    raise Panic("OS can't spawn worker thread: Resource temporarily unavailable\nnote: run with RUST_BACKTRACE=1")


def test_a_panic_is_told_and_the_users_ctrl_c_is_not_mistaken_for_one() -> None:
    told = r"^No table: OS can't spawn worker thread: .* unavailable\n"
    with pytest.raises(RecordingError, match=told) as caught, in_words("No table", RecordingError):
        panicking()
    assert "ulimit" in caught.value.remedy
    with pytest.raises(KeyboardInterrupt), in_words("No table", RecordingError):
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="ours"), in_words("No table", RecordingError, KeyError):
        raise ValueError("ours")


def test_finished_steps_stay_where_no_table_can_be_made_of_them(
    tmp_path: Path, make_step: Callable[..., Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path, "q")
    steps = [make_step(1), make_step(2)]
    run.add_step(steps[0], b"", np.array([1.0], np.float32))
    monkeypatch.setattr(folder, "metric_table", panicking)
    with pytest.raises(RunError, match=r"metrics\.parquet cannot be made: OS can't spawn"):
        run.write_tables(steps, [])

    def full(*_: object, **__: object) -> None:
        raise zstandard.ZstdError("cannot compress: Allocation error : not enough memory")

    monkeypatch.setattr(zstandard, "ZstdCompressor", full)
    with pytest.raises(RunError, match="Step 2 cannot be kept: cannot compress"):
        run.add_step(steps[1], b"", np.array([1.0], np.float32))
    assert [step.number for step in run.steps()] == [1]


def test_charts_that_cannot_be_drawn_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import vl_convert

    def canceled(_: object) -> str:
        raise ValueError("Vega-Lite to SVG conversion failed:\noneshot canceled")

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", canceled)
    with pytest.raises(RunError, match="charts of the report cannot be drawn: Vega-Lite to SVG conversion failed"):
        vega.start_engine()


ALONE = {"OPENBLAS_NUM_THREADS": "1", "_RJEM_MALLOC_CONF": "background_thread:false"}
"""No threads of libraries that start when they like: where that is after the limit, they end the process."""
SHORT = """
import re, resource, sys
from pathlib import Path
import numpy as np, polars
from loadframe.errors import RunError
from loadframe.panics import reserve
if "reserved" in sys.argv:
    reserve(RunError)
size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (24 << 20), size + (24 << 20)))
square = np.eye(300)
square @ square
np.linalg.cholesky(square)
polars.DataFrame({"each": range(1000)}).group_by("each").agg(polars.len())
print("done")
"""


def test_what_libraries_keep_is_taken_before_memory_runs_out() -> None:
    def said(*more: str) -> str:
        environment = {**os.environ, **ALONE}
        command = [sys.executable, "-c", SHORT, *more]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout

    assert said("reserved") == "done\n"
    assert said() == ""


TAKEN = """
import re, resource
from pathlib import Path
import polars
from loadframe.errors import RunError
from loadframe.panics import ROOM_BYTES, in_words, reserve
reserve(RunError)
size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
most = {most}
resource.setrlimit(getattr(resource, "{what}"), (most, most))
with in_words("No table", RunError, room_bytes=ROOM_BYTES):
    polars.DataFrame({{"each": range(1000)}}).group_by("each").agg(polars.len())
"""


@pytest.mark.parametrize(
    ("what", "most", "told"),
    [
        ("RLIMIT_AS", "size + (128 << 20)", "256 MiB of memory are not available (Cannot allocate memory)"),
        ("RLIMIT_NOFILE", "8", "16 more files cannot be opened (Too many open files)"),
    ],
)
def test_what_would_abort_the_process_is_not_begun(what: str, most: str, told: str) -> None:
    environment = {**os.environ, **ALONE}
    command = [sys.executable, "-c", TAKEN.format(what=what, most=most)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 1
    assert f"RunError: No table: {told}" in found.stderr
