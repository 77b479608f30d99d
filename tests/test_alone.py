"""Where an extension is missing a file of tests that imports it is left out; what the core imports is a fault."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import alone
from loadframe.host.environment import python

CONFIGURED = """
import sys
from alone import LeftOut
sys.modules["loadframe_tune"] = None
def pytest_configure(config):
    config.pluginmanager.register(LeftOut(1))
"""
PASSES, IMPORTS = "def test_it(): pass", "import loadframe_tune"
IN_THE_CORE = f"exec({IMPORTS!r}, {{'__name__': 'loadframe.core'}})"
BY_NAME = "exec('import importlib; importlib.import_module(\"loadframe_tune\")', {'__name__': 'loadframe.core'})"


@pytest.mark.parametrize(
    ("files", "code", "left_out"),
    [
        ([PASSES, IMPORTS], pytest.ExitCode.OK, 1),
        ([PASSES, IMPORTS, IMPORTS], pytest.ExitCode.TESTS_FAILED, 2),
        ([PASSES, IN_THE_CORE], pytest.ExitCode.INTERRUPTED, 0),
        ([PASSES, BY_NAME], pytest.ExitCode.INTERRUPTED, 0),
        ([PASSES, "import loadframe_unknown"], pytest.ExitCode.INTERRUPTED, 0),
    ],
)
def test_what_is_left_out_is_said_and_bounded(tmp_path: Path, files: list[str], code: int, left_out: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFIGURED)
    (tmp_path / "pytest.ini").touch()
    for number, text in enumerate(files):
        (tmp_path / f"test_{number}.py").write_text(text)
    command = python("pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path))
    path = os.pathsep.join([str(Path(alone.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert f"because they import an extension: {left_out} (at most 1 may be)" in done.stdout
