"""`loadframe limits` from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., object]


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
        (["--over", "ten"], 1, "--over"),
        (["--over", "10ms"], 1, "too short"),
        (["--user", "x"], 2, "--attach"),
        (["--set", "a=b"], 2, "--target"),
        (["--target", "x.toml", "--pid", "1"], 2, "omit --pid"),
        (["--target", "x.toml"], 1, "x.toml"),
    ],
)
def test_what_makes_no_sense_is_refused(loadframe: Command, arguments: list[str], code: int, words: str) -> None:
    result = loadframe("limits", *arguments)
    assert result.code == code  # type: ignore[attr-defined]
    assert words in result.err  # type: ignore[attr-defined]


def test_an_option_file_with_nobody_behind_it(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text("[client]\nuser=u\npassword=verysecret\nsocket=/nowhere/s.sock\n")
    result = loadframe("limits", "--attach", "mariadb", "--option-file", "my.cnf")
    assert result.code == 1  # type: ignore[attr-defined]
    assert "/nowhere/s.sock" in result.err  # type: ignore[attr-defined]
    assert "verysecret" not in result.err  # type: ignore[attr-defined]
