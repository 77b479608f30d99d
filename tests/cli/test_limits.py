"""`loadframe limits` from the command line."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Command = Callable[..., object]


@pytest.fixture
def printing() -> Iterator[Callable[[Path], object]]:
    """A pipeline's lines, ten times a second, until the test is over."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def write(file: Path) -> None:
        began = time.monotonic()
        with file.open("w") as log:
            while not over.wait(0.1):
                now = time.monotonic()
                for order, (name, busy, blocked, waiting) in enumerate(
                    (("PARSE", 0.2, 1.8, 3), ("APPLY", 2.0, 0.0, 9), ("SEND", 0.1, 0.0, 0))
                ):
                    seconds = {"busy_s": busy, "blocked_s": blocked, "idle_s": 2.0 - busy - blocked}
                    sums = {end: share * (now - began) for end, share in seconds.items()}
                    told = {"stage": name, "order": order, "time": now, "workers": 2, "waiting": waiting, "queue": 10}
                    print(json.dumps({**told, "done": int(50 * (now - began)), **sums}), file=log, flush=True)

    def start(file: Path) -> None:
        file.touch()
        threads.append(threading.Thread(target=write, args=(file,), daemon=True))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


@pytest.mark.long
def test_a_process_for_people_and_programs(loadframe: Command) -> None:
    pid = str(os.getpid())
    text = loadframe("limits", "--pid", pid).out  # type: ignore[attr-defined]
    assert f"(pid {pid})" in text
    assert "process.open_files" in text
    found = loadframe("limits", "--pid", pid, "--over", "6s", "--json").json  # type: ignore[attr-defined]
    assert found["schema"] == "loadframe.limits/1"
    assert found["readings"] == 7
    assert {"limits", "unread", "chains", "silent_cuts", "axis"} <= found.keys()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--pid", "0"], 1, "no process 0"),
        (["--attach", "oracle"], 1, "KIND:ADDRESS"),
        (["--over", "ten"], 2, "--over"),
        (["--over", "10ms"], 2, "too short"),
        (["--user", "x"], 2, "--attach"),
        (["--set", "a=b"], 2, "--target"),
        (["--target", "x.toml", "--pid", "1"], 2, "omit --pid"),
        (["--target", "x.toml"], 1, "x.toml"),
        (["--stages", "no.log"], 1, "--stages no.log is no file"),
    ],
)
def test_what_makes_no_sense_is_refused(loadframe: Command, arguments: list[str], code: int, words: str) -> None:
    result = loadframe("limits", *arguments)
    assert result.code == code  # type: ignore[attr-defined]
    assert words in result.err  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_live_pipeline_is_clogged_or_starved_by_the_lines_that_it_prints(
    loadframe: Command, tmp_path: Path, printing: Callable[[Path], object]
) -> None:
    """PARSE hands on to APPLY, whose two workers are at work all the time; nothing comes to SEND."""
    file = tmp_path / "app.log"
    printing(file)
    found = loadframe("limits", "--stages", str(file), "--json").json  # type: ignore[attr-defined]
    limits = {one["id"]: one for one in found["limits"]}
    assert limits["pipeline.APPLY"]["use"] == pytest.approx(1.0, abs=0.05)
    assert limits["pipeline.APPLY.queue"]["use"] == pytest.approx(0.9, abs=0.05)
    assert limits["pipeline.SEND"]["use"] == pytest.approx(0.05, abs=0.05)
    (said,) = [one for one in found["warnings"] if "APPLY" in one]
    assert said.startswith("all 2 workers of the stage APPLY are at work all the time")
    assert "clogged there, not starved" in said
    text = loadframe("limits", "--stages", str(file), "--over", "2s").out  # type: ignore[attr-defined]
    assert "pipeline.APPLY" in text and "clogged there" in text


@pytest.mark.extension("loadframe_pipelines")
def test_a_pipeline_that_prints_nothing_meanwhile_is_said(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text('{"stage": "APPLY", "done": 5}\n')
    found = loadframe("limits", "--stages", "app.log", "--over", "1s", "--json").json  # type: ignore[attr-defined]
    assert not [one for one in found["limits"] if one["id"].startswith("pipeline.")]
    assert any("printed never" in one for one in found["warnings"])


def test_an_option_file_with_nobody_behind_it(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text("[client]\nuser=u\npassword=verysecret\nsocket=/nowhere/s.sock\n")
    result = loadframe("limits", "--attach", "mariadb", "--option-file", "my.cnf")
    assert result.code == 1  # type: ignore[attr-defined]
    assert "/nowhere/s.sock" in result.err  # type: ignore[attr-defined]
    assert "verysecret" not in result.err  # type: ignore[attr-defined]
