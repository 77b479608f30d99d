"""A watch where its folder has no name in text, or the machine no /proc, ends in words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
WATCH = [LOADFRAME, "watch", "--pid", str(os.getpid()), "--interval", "1s", "--for", "1s"]
URL = """
[study]
name = "shop"
question = "Does it answer?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:8099"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
"""


def said(command: list[str], folder: bytes | Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.long
@pytest.mark.timeout(90)
@pytest.mark.parametrize("more", [[], ["--folder", "w"], ["--folder", os.fsdecode(b"w\xff")], ["--json"]])
def test_a_folder_whose_name_is_no_text(tmp_path: Path, more: list[str]) -> None:
    folder = os.fsencode(tmp_path) + b"/w\xff"
    Path(os.fsdecode(folder)).mkdir()
    assert "The watch folder cannot be there: its path" in said([*WATCH, *more], folder)


@pytest.mark.long
@pytest.mark.timeout(90)
def test_an_argument_that_is_no_text(tmp_path: Path) -> None:
    assert "The watch cannot be handed over" in said([*WATCH, "--command", os.fsdecode(b"/bin/true \xff")], tmp_path)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("what", [["--pid", "1"], ["study.toml", "--every", "1s"]])
def test_a_machine_without_proc(tmp_path: Path, what: list[str]) -> None:
    (tmp_path / "study.toml").write_text(URL)
    without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "-"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing may be mounted here")
    words = [*without, LOADFRAME, "watch", *what, "--interval", "1s", "--for", "1s"]
    assert "\n/proc is not mounted (" in "\n" + said(words, tmp_path)
