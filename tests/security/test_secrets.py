"""A secret that stands in a study is shown nowhere, and other users can read it nowhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loadframe import masking
from loadframe.cli import faults
from loadframe.host.state import state_directory

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
SERVING = Path(__file__).parents[1] / "kinds" / "serving.py"
PLANTED = re.compile("s3cret-[A-Z][a-z]9")
STUDY = """
[study]
name = "shop"
question = "How many?"
[target]
kind = "service"
user = "root"
command = ["{python}", "{program}", "--port", "{{port}}", {words}]
environment = {{ {variables} }}
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
[measure]
warmup = "100ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "10s"
profile = "off"
"""
WORDS = '"--token", "s3cret-Aa9", "--db-password=s3cret-Bb9", "shop:s3cret-Cc9@tcp(127.0.0.1:9)/shop"'
VARIABLES = 'DB_PASSWORD = "s3cret-Dd9", SHOP_DB = "mysql://shop:s3cret-Ee9@127.0.0.1:9/shop"'
PROGRAM = """
import os, sys
print("began with", sys.argv, os.environ["SHOP_DB"], os.environ["DB_PASSWORD"], flush=True)
if os.path.exists({broken!r}):
    sys.exit(3)
os.execv(sys.executable, [sys.executable, {serving!r}, *sys.argv[1:3]])
"""


def readable_for_others(top: Path) -> list[Path]:
    """All files below that another user reaches and may read."""
    if not top.stat().st_mode & 0o001:
        return []
    here = [each for each in top.iterdir() if each.is_file() and each.stat().st_mode & 0o004]
    return here + [each for below in top.iterdir() if below.is_dir() for each in readable_for_others(below)]


def measured(study: Path, code: int) -> str:
    """What a command says, in a folder of its own."""
    command = [LOADFRAME, "measure", str(study), "--runs", str(study.parent / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=study.parent, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="target.user needs root")
def test_a_secret_of_a_study_is_shown_nowhere_and_kept_from_others(tmp_path: Path) -> None:
    broken, program, study = tmp_path / "broken", tmp_path / "shop.py", tmp_path / "shop.toml"
    program.write_text(PROGRAM.format(broken=str(broken), serving=str(SERVING)))
    study.write_text(STUDY.format(python=sys.executable, program=program, words=WORDS, variables=VARIABLES))
    said = measured(study, 0)
    for options in ([], ["--json"]):
        checked = subprocess.run([LOADFRAME, "study", "check", str(study), *options], capture_output=True, text=True)
        assert checked.returncode == 0 and "SHOP_DB" in checked.stdout
        said += checked.stdout + checked.stderr
    broken.touch()
    said += measured(study, 1)
    assert "began with" in said and not PLANTED.findall(said)
    runs = tmp_path / "runs"
    assert [run.stat().st_mode & 0o777 for run in runs.iterdir()] == [0o700, 0o700]
    told = [each for each in runs.rglob("*") if each.is_file() and PLANTED.search(each.read_bytes().decode("latin-1"))]
    assert {each.name for each in told} == {"study.toml", "study.json"}, "only as the study has it"
    assert readable_for_others(runs) == []


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="target.user needs root")
def test_a_run_of_a_study_without_secrets_is_for_all(tmp_path: Path) -> None:
    study = tmp_path / "shop.toml"
    study.write_text(STUDY.format(python=sys.executable, program=SERVING, words="", variables='POOL = "4"'))
    measured(study, 0)
    assert [run.stat().st_mode & 0o777 for run in (tmp_path / "runs").iterdir()] == [0o755]
    assert readable_for_others(tmp_path / "runs")


def test_no_secret_is_in_a_traceback_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "remembered", set())
    masking.remember(["s3cret-Yy8"])
    try:
        raise RuntimeError("password=s3cret-Aa9 postgres://me:s3cret-Bb9@h/db s3cret-Yy8")
    except RuntimeError as error:
        said = str(faults.in_words(error))
    kept = max((state_directory() / "faults").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    assert str(kept) in said
    assert "s3cret" not in said + kept.read_text()
    kept.unlink()
