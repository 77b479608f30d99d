"""What is started looks for nothing in the folder in which it works, which may be a stranger's: shown with planted
files, and held for all of the source."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.errors import MissingTool
from loadframe.host.environment import SAFE_PATH, environment, importing, is_own, located, own_environment, python
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, spawn
from loadframe.recording.control import Recorder
from loadframe.recording.readers import RecordingReader
from loadframe.workloads import sysbench
from loadframe_drivers.sysbench import installed
from sources import EXTENSIONS, ROOT

INSTALLED = ("src", *(f"{extension}/src" for extension in EXTENSIONS))
HELPER = ROOT / "src/loadframe/host/environment.py"
LAUNCHES = ROOT / "src/loadframe/host/processes.py"
"""Starts launch.py with -I -S."""
NAMES = ROOT / "src/loadframe/host/mounts.py"
"""Says where the interpreter is, and starts nothing."""
PLANTED = "raise SystemExit('planted')\n"


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which a stranger has put what programs look for, each of which says so in `ran`."""
    folder = tmp_path / "strangers"
    folder.mkdir()
    says = f"open({str(folder / 'ran')!r}, 'a').write(__name__)\n{PLANTED}"
    for name in ("argparse", "json", "sitecustomize", "usercustomize", "struct", "sqlite3", "loadframe"):
        (folder / f"{name}.py").write_text(says)
    for name in ("oltp_common", "ffi", "x"):
        (folder / f"{name}.lua").write_text(f"io.open('{folder}/ran', 'a'):write('{name}.lua')\n")
    for name in ("sysbench", "true", "perf"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder}/ran\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


def _ran(folder: Path) -> str:
    return (folder / "ran").read_text() if (folder / "ran").exists() else ""


def test_the_recorder_imports_nothing_from_the_folder_in_which_a_command_is_called(strangers: Path) -> None:
    with Recorder(Path("raw.lfr")):
        pass
    with RecordingReader(strangers / "raw.lfr") as reader:
        assert reader.all_ticks()
    assert _ran(strangers) == ""


def test_a_driver_in_python_imports_nothing_from_its_folder(strangers: Path) -> None:
    for module in ("loadframe.workloads.job_queue_worker", "loadframe_bulk.client"):
        done = subprocess.run(python(module), capture_output=True, text=True, cwd=strangers, env=environment())
        assert "not enough values to unpack" in done.stderr, "it came as far as its own main"
    assert _ran(strangers) == ""


@pytest.mark.server
def test_sysbench_loads_nothing_from_the_folder_in_which_a_command_is_called(strangers: Path) -> None:
    installed.cache_clear()
    assert "table-size" in installed("oltp_read_write").options
    assert _ran(strangers) == ""


@pytest.mark.server
@pytest.mark.parametrize("program", ["sysbench", "wrk"])
def test_a_lua_script_finds_nothing_in_its_working_folder(strangers: Path, program: str) -> None:
    (strangers / "script.lua").write_text('pcall(require, "x")\nprint(package.path, package.cpath)\nos.exit(0)\n')
    arguments = ["script.lua", "run"] if program == "sysbench" else ["-s", "script.lua", "-d1", "http://127.0.0.1:9/"]
    more = sysbench.search_paths() if program == "sysbench" else {}
    with (strangers / "said").open("wb") as said:
        started = [program, *arguments]
        spawn(started, Allowance(US), stdout=said, stderr=said, cwd=strangers, env={**os.environ, **more}).wait()
    found = (strangers / "said").read_text().split("\n")[-2].replace("\t", ";")
    assert all(entry.startswith("/") for entry in found.split(";")), found
    assert _ran(strangers) == ""


def test_search_paths_have_absolute_entries_only(strangers: Path) -> None:
    given = {
        "PATH": ":.:/bin::bin",
        "LD_LIBRARY_PATH": ":",
        "PYTHONPATH": f"src:{strangers}:",
        "LUA_PATH": "./?.lua;;/opt/?.lua",
    }
    assert environment(given) == {
        "PATH": "/bin",
        "PYTHONPATH": f"{strangers}/src:{strangers}",
        "LUA_PATH": "/opt/?.lua",
        "LUA_CPATH": "/usr/lib/lua/5.1/?.so",
    }


def test_python_of_ours_has_the_safe_path_and_no_program_of_others_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what a process of ours starts in turn; one that the caller has set is the caller's."""
    monkeypatch.delenv(SAFE_PATH, raising=False)
    assert own_environment()[SAFE_PATH] and SAFE_PATH not in environment(own_environment())
    assert not is_own(python("locust", "-f", "x")) and not is_own(importing("loadframe.units"))
    for given, expected in ((own_environment(), "None"), ({**own_environment(), SAFE_PATH: "1"}, "1")):
        with (tmp_path / "said").open("wb") as said:
            command = [sys.executable, "-c", f"import os; print(os.environ.get({SAFE_PATH!r}))"]
            spawn(command, Allowance(user=US), stdout=said, stderr=said, cwd=tmp_path, env=given).wait()
        assert (tmp_path / "said").read_text().strip() == expected
    assert own_environment({SAFE_PATH: "1"})[SAFE_PATH] == "1"


def test_what_a_library_starts_from_us_is_not_looked_for_in_the_folder_of_the_caller(strangers: Path) -> None:
    """dask and platform.processor() run uname."""
    (strangers / "uname").write_text(f"#!/bin/sh\necho uname >> {strangers}/ran\n")
    (strangers / "uname").chmod(0o755)
    given = {**os.environ, "PATH": f".::{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    code = "from loadframe.host.environment import take_own_environment; take_own_environment()\n"
    code += "import subprocess; subprocess.run(['uname', '-p'], check=True)"
    subprocess.run([sys.executable, "-P", "-c", code], env=given, check=True, capture_output=True)
    assert _ran(strangers) == ""


def test_folders_of_ours_are_the_same_in_a_process_that_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert own_environment({"LOADFRAME_STATE": "state"})["LOADFRAME_STATE"] == str(tmp_path / "state")


def test_programs_are_not_looked_for_in_the_working_folder(strangers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ".::")
    assert located("true") is None
    with pytest.raises(MissingTool, match="true"):
        spawn(["true"], Allowance(US), stdout=None, stderr=None, cwd=strangers)
    monkeypatch.setenv("PATH", ":.:/usr/bin")
    assert spawn(["true"], Allowance(US), stdout=None, stderr=None, cwd=strangers).wait() == 0
    assert _ran(strangers) == ""


# --- for all of the source ---


def _sources(*folders: str, having: str = "") -> Iterator[tuple[Path, ast.Module]]:
    """Those in whose text there is what is looked for."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if having in (text := path.read_text()):
                yield path, ast.parse(text)


def _is_executable(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "executable" and ast.unparse(node) == "sys.executable"


@pytest.mark.long
def test_python_of_ours_is_started_by_one_helper() -> None:
    """`python -m` searches the working folder first; only the helper has the option that stops it."""
    assert python("a.module", "x") == [sys.executable, "-P", "-m", "a.module", "x"]
    for path, tree in _sources(*INSTALLED, having="executable"):
        if path in (HELPER, LAUNCHES, NAMES):
            continue
        for node in ast.walk(tree):
            assert not _is_executable(node), f"{path}:{node.lineno}: use host.environment.python"  # type: ignore[attr-defined]
    for path, tree in _sources("src", "extensions", "tests", "benchmarks", having="-m"):
        modules = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == "-m"]
        if path not in (HELPER, Path(__file__)):
            assert not modules, f"{path}:{modules[0].lineno}: use host.environment.python"


@pytest.mark.long
def test_programs_are_started_by_absolute_paths() -> None:
    """By spawn, which locates them, or with a path that is known already."""
    for path, tree in _sources(*INSTALLED):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if getattr(call.func, "attr", "") not in ("run", "Popen", "which", "system", "popen"):
                continue
            name = ast.unparse(call.func)
            words = call.args[0].elts[:1] if call.args and isinstance(call.args[0], ast.List | ast.Tuple) else []
            bare = [word for word in words if isinstance(word, ast.Constant) and not str(word.value).startswith("/")]
            if name in ("subprocess.run", "subprocess.Popen"):
                assert not bare, f"{path}:{call.lineno}: give what cage.environment.located answers"
            assert name not in ("shutil.which", "os.system", "os.popen") or path == HELPER or _reports(path, call)


def _reports(path: Path, call: ast.Call) -> bool:
    """Where a program is only told of, or is the user's own command."""
    return path.name in ("ndb.py", "checking.py", "postgres_connection.py") and bool(call.args)
