"""Surroundings that nobody chose: an answer or a message in words, a documented exit code, one object with --json."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
Command = Callable[..., Any]
POINTS = "load,throughput\n1,10\n2,19\n4,30\n8,33\n16,33\n"
STRANGER = 54321
"""A user of whom /etc/passwd knows nothing."""
VARIABLES = tuple(name for name in os.environ if not name.startswith("LOADFRAME"))

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "stdin closed": {"streams": {"in": None}},
    "stderr closed": {"streams": {"err": None}},
    "stdin and stderr closed": {"streams": {"in": None, "err": None}},
    "stderr full": {"streams": {"err": "/dev/full"}},
    "ASCII": {"encoding": "ascii"},
    "Latin 1": {"encoding": "latin-1"},
    "a dumb terminal": {"environment": {"TERM": "dumb"}},
    "an unknown terminal": {"environment": {"TERM": "none-such"}},
    "no terminal named": {"without": ["TERM"]},
    "colour forced": {"environment": {"FORCE_COLOR": "1"}, "without": ["NO_COLOR"]},
    "20 columns": {"environment": {"COLUMNS": "20", "LINES": "2"}},
    "no columns": {"environment": {"COLUMNS": "0", "LINES": "0"}},
    "columns that are no number": {"environment": {"COLUMNS": "wide", "LINES": "-1"}},
    "no HOME": {"without": ["HOME"]},
    "HOME is nowhere": {"environment": {"HOME": "/nonexistent"}},
    "HOME is relative": {"environment": {"HOME": "."}},
    "no PATH": {"without": ["PATH"]},
    "PATH is nowhere": {"environment": {"PATH": "/nonexistent"}},
    "nothing but our own variables": {"without": VARIABLES},
    "TMPDIR is nowhere": {"environment": {"TMPDIR": "/nonexistent"}},
    "a time zone that is none": {"environment": {"TZ": "../../nowhere"}},
    "a time zone of its own": {"environment": {"TZ": "<+1345>-13:45"}},
    "umask 0": {"umask": 0},
    "umask 0777": {"umask": 0o777},
    "64 open files": {"limits": {"RLIMIT_NOFILE": 64}},
    "20 open files": {"limits": {"RLIMIT_NOFILE": 20}},
    "a small stack": {"limits": {"RLIMIT_STACK": 256 << 10}},
    "a CPU time of an hour": {"limits": {"RLIMIT_CPU": 3600}},
    "no core file": {"limits": {"RLIMIT_CORE": 0}},
    "the working folder is gone": {"gone": True},
    "the working folder may not be read": {"user": STRANGER, "closed": 0o311},
    "scratch is nowhere": {"environment": {"LOADFRAME_SCRATCH": "/nonexistent/x"}},
    "empty variables": {"environment": {"LOADFRAME_STATE": "", "LOADFRAME_SCRATCH": "", "XDG_STATE_HOME": ""}},
    "state is a file": {"environment": {"LOADFRAME_STATE": "/etc/passwd"}},
    "state is nowhere": {"environment": {"LOADFRAME_STATE": "/proc/nowhere"}},
    "state is relative": {"environment": {"LOADFRAME_STATE": "state"}},
    "a user without a name or a home": {"user": STRANGER, "without": ["HOME", "LOADFRAME_STATE"]},
    "a user whose home is the root": {"user": STRANGER, "environment": {"HOME": "/"}, "without": ["LOADFRAME_STATE"]},
    "a user who may not enter our folders": {"user": STRANGER},
}
SILENT = frozenset({"stderr full"})
"""Where something that was said is lost: exit 1, and the answer all the same, unless nothing had to be said."""


@pytest.fixture
def points() -> Iterator[Path]:
    """Not in the working folder, which may be gone, and where any user may read it."""
    with tempfile.TemporaryDirectory(dir=os.environ["LOADFRAME_SCRATCH"]) as name:
        Path(name).chmod(0o755)
        (Path(name) / "points.csv").write_text(POINTS)
        yield Path(name) / "points.csv"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_answer_that_needs_nothing_of_them_is_given(
    loadframe_in: Command, points: Path, tmp_path: Path, name: str
) -> None:
    surroundings = ENVIRONMENTS[name]
    if "user" in surroundings and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    done = loadframe_in("curve", str(points), "--json", **surroundings)
    assert (done.code, done.json["schema"]) in ((0, "loadframe.curve/1"), (int(name in SILENT), "loadframe.curve/1"))
    tmp_path.mkdir(exist_ok=True)  # where it was gone
    listed = loadframe_in("changes", "list", "--json", **surroundings)
    assert listed.code in (0, 1), listed.err
    assert listed.json["schema"] == ("loadframe.changes/1" if listed.code == 0 else "loadframe.error/1")
    assert "Loadframe has a bug" not in done.err + listed.err


MEASURED: dict[str, tuple[dict[str, Any], int, str]] = {
    "the working folder is gone": ({"gone": True}, 1, "Choose another place with --runs"),
    "64 open files": ({"limits": {"RLIMIT_NOFILE": 64}}, 0, ""),
    "umask 0777": ({"umask": 0o777}, 0, ""),
    "a GiB of address space": ({"limits": {"RLIMIT_AS": 1 << 30}}, 1, "a run needs 2,048 MiB"),
    "files of a KiB at most": ({"limits": {"RLIMIT_FSIZE": 1024}}, 1, "File too large"),
    "a dumb terminal, ASCII, nothing set": (
        {"encoding": "ascii", "environment": {"TERM": "dumb"}, "without": VARIABLES}, 0, "",
    ),
}  # fmt: skip


NOT_UTF_8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Of a Python of its own: one that has begun in UTF-8 stays with it."""


@pytest.mark.long
@pytest.mark.parametrize("folder", ["runs", "läufe"])
def test_where_the_locale_is_not_utf_8(study: Path, folder: str) -> None:
    """The study's text is UTF-8 all the same; a path whose letters are beyond the locale is refused before anything is
    made: no record could name it."""
    study.write_text(study.read_text(encoding="utf-8").replace("How many?", "Wie viele „Aufträge“?"), encoding="utf-8")
    command = [LOADFRAME, "measure", str(study), "--runs", str(study.parent / folder), "--json"]
    done = subprocess.run(command, env=os.environ | NOT_UTF_8, capture_output=True, check=False)
    plain = folder.isascii()
    assert done.returncode == (0 if plain else 1), done.stderr
    assert (study.parent / folder).exists() is plain
    if plain:
        (run,) = (study.parent / folder).iterdir()
        assert "„Aufträge“" in (run / "study.toml").read_text(encoding="utf-8")
    else:
        assert "is not text in the encoding of file names, ascii" in json.loads(done.stdout)["message"]


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_run_folders_on_a_file_system_that_is_read_only(study: Path) -> None:
    """Also for root, whom no mode keeps out."""
    runs = study.parent / "runs"
    runs.mkdir()
    mounted = f"mount -t tmpfs -o ro none {runs} && exec {LOADFRAME} measure {study} --runs {runs} --json"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mounts of one's own here (a chroot)")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", mounted], capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)["message"]
    assert "Read-only file system" in told and "Choose another place with --runs" in told


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURED)
def test_a_measurement_is_made_or_refused_in_words(
    loadframe_in: Command, study: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    surroundings, code, words = MEASURED[name]
    elsewhere = tmp_path_factory.mktemp("study") / "study.toml"
    elsewhere.write_text(study.read_text())
    study.unlink()
    done = loadframe_in("measure", str(elsewhere), "--json", **surroundings)
    assert (done.code, words in done.err) == (code, True), done.err
    assert "Loadframe has a bug" not in done.err
    assert done.json["schema"] == ("loadframe.error/1" if code else "loadframe.curve/1")
    if code == 0:
        (run,) = (tmp_path / "runs").iterdir()
        assert run.stat().st_mode & stat.S_IWOTH == 0
        assert json.loads((run / "steps.jsonl").read_text().splitlines()[0])["level"] in (1, 2)
