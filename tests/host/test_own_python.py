"""Python and Loadframe in a folder that is closed to others, as root's home is: a process of another user runs them,
and sees nothing else of that folder."""

import os
import shutil
import site
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import loadframe
from loadframe.host import environment, mounts
from loadframe.host.privilege import US, LeaseUser, Privilege
from loadframe.host.processes import Allowance, may_have_mounts, spawn
from loadframe.runs.folder import RunFolder

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not may_have_mounts(), reason="only root starts processes under another user with mounts"
)
USER = LeaseUser(61184)
MAIN = "from loadframe.cli.entry import main; main()"
STUDY = """
[study]
name = "closed"
question = "Who runs the driver?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
options = { backlog = 20 }
[load]
axis = "concurrency"
levels = [2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that only root may enter, with a Python of its own, our source, a link to that, and a secret."""
    with tempfile.TemporaryDirectory(prefix="lf-closed-", dir="/var/tmp") as name:
        place = Path(name)
        assert place.stat().st_mode & 0o777 == 0o700
        venv.create(place / "venv", symlinks=True)
        shutil.copytree(Path(loadframe.__file__).parent, place / "copied/loadframe", ignore=lambda *_: ["__pycache__"])
        (place / "source").symlink_to("copied")
        packages = next((place / "venv/lib").glob("python*/site-packages"))
        found = [entry for entry in map(Path, sys.path) if entry.is_dir() and entry.name.endswith("-packages")]
        (packages / "ours.pth").write_text("\n".join(map(str, (place / "source", *found))) + "\n")
        (place / "secret").write_text("of root's")
        yield place


def _said(command: list[str], user: Privilege = USER) -> tuple[int, str]:
    process = spawn(
        command, Allowance(user), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=environment.NO_FOLDER
    )
    printed, _ = process.communicate(timeout=60)
    return process.returncode, printed.decode()


def _in_closed(closed: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """As if we had been started by the Python there."""
    python = str(closed / "venv/bin/python")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(sys, "prefix", str(closed / "venv"))
    monkeypatch.setattr(sys, "exec_prefix", str(closed / "venv"))
    monkeypatch.setattr(sys, "path", ["", str(closed / "source"), *sys.path[1:]])
    return python


@pytest.mark.long
def test_another_user_runs_them_and_sees_nothing_else_of_the_folder(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = _in_closed(closed, monkeypatch)
    program = (
        "import os, loadframe.workloads.job_queue_worker as ours; print(os.getuid(), ours.__file__);"
        f"print(sorted(os.listdir({str(closed)!r})))"
    )
    status, said = _said([python, "-P", "-c", program])
    assert said.splitlines() == [
        f"{USER} {closed}/source/loadframe/workloads/job_queue_worker.py",
        str(["copied", "source", "venv"]),
    ]
    assert status == 0
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert closed.name not in mounts, "they are the process's own"


@pytest.mark.parametrize("place", ["", "venv", "copied/loadframe", "copied"])
def test_nothing_is_written_there(closed: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """As root would, who could write to folders of its own: the mounts are read-only, not the modes alone."""
    (closed / place).chmod(0o777 if place else 0o700)
    python = _in_closed(closed, monkeypatch)
    status, said = _said([python, "-P", "-c", f"open({str(closed / place / 'planted')!r}, 'w')"])
    assert status == 1
    assert "Read-only file system" in said


def test_what_names_no_file_of_theirs_has_the_mounts_of_the_machine(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _in_closed(closed, monkeypatch)
    ours = str(Path("/proc/self/ns/mnt").readlink())
    assert _said(["readlink", "/proc/self/ns/mnt"]) == (0, f"{ours}\n")
    assert _said([sys.executable, "-P", "-c", f"import os; assert os.readlink('/proc/self/ns/mnt') == {ours!r}"], US)


def test_a_script_of_ours_can_be_read_by_a_program_of_others(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_closed(closed, monkeypatch)
    script = closed / "source/loadframe/workloads/oltp.lua"
    assert _said(["cat", str(script)]) == (0, script.read_text(encoding="utf-8"))
    assert _said(["cat", str(closed / "secret")])[0] == 1


def test_a_home_that_is_searched_for_modules_is_not_shown(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, home = _in_closed(closed, monkeypatch), closed / "home"
    shutil.copytree(closed / "copied/loadframe", home / "loadframe")
    (home / "secret").write_text("of root's")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(mounts, "PACKAGE", home / "loadframe")
    monkeypatch.setattr(sys, "path", ["", str(home), *sys.path[1:]])
    program = f"import os; print(sorted(os.listdir({str(home)!r})))"
    assert _said([python, "-P", "-c", program]) == (0, "['loadframe']\n")


def test_a_home_that_is_a_virtual_environment_is_not_shown(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, home = _in_closed(closed, monkeypatch), closed / "home"
    (home / "lib").mkdir(parents=True)
    (home / "secret").write_text("of root's")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "prefix", str(home))
    program = f"import os; print(sorted(os.listdir({str(home)!r})))"
    assert _said([python, "-P", "-c", program]) == (0, "['lib']\n")


def test_packages_of_our_user_are_found_with_another_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, site.getusersitepackages()])
    assert mounts.user_packages() == {"PYTHONUSERBASE": site.getuserbase()}
    monkeypatch.setattr(sys, "path", [])
    assert mounts.user_packages() == {}


@pytest.mark.long
def test_a_driver_is_no_root_and_no_warning_is_printed(closed: Path, tmp_path: Path) -> None:
    """The whole command, begun by a Python that only root may enter."""
    (tmp_path / "study.toml").write_text(STUDY)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(closed / "venv/bin/python"), "-P", "-c", MAIN, "measure", str(tmp_path / "study.toml")]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "root" not in done.stderr
    (run,) = (folder for folder in (tmp_path / "runs").iterdir() if not folder.is_symlink())
    driver = RunFolder(run).host().facts["load driver"]
    assert driver.startswith("user 6"), driver
