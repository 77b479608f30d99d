"""A study that names files by relative paths, on a host that has no such folder."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from stations import Laboratory, Station, paced

STUDY = """
[study]
name = "driven"
question = "Where is the driver?"
[target]
kind = "url"
authorised = true
owner = "this test"
[target.settings]
url = "http://127.0.0.1:{port}"
[workload]
kind = "command"
command = ["./drive"]
[workload.options]
loop = "closed"
[load]
axis = "concurrency"
levels = [2]
[measure]
warmup = "300ms"
window = "1s"
blocks = {{ min = 2, max = 2 }}
budget = "60s"
profile = "off"
"""


@pytest.fixture
def here() -> Iterator[Path]:
    """Where the command is called."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "laboratory"
        folder.mkdir()
        for each in (folder.parent, folder):
            each.chmod(0o755)
        program = folder / "drive"
        program.write_text("#!/bin/sh\nsleep 1\n", encoding="utf-8")
        program.chmod(0o755)
        yield folder


@pytest.mark.long
def test_it_is_said_in_which_folder_the_host_has_looked(
    here: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = f'mount -t tmpfs -o size=1m,mode=700 tmpfs {here.parent} && cd / && exec "$@"'
    by = ["unshare", "--mount", "sh", "-c", hidden, "sh"]
    if subprocess.run([*by, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    monkeypatch.chdir(here)
    with paced(0.02) as port:
        lab = Laboratory(open_folder, [Station("far", open_folder / "far", by=by)], port=port)
        process = lab.begin("[2]", study=STUDY.format(port=port))
        out, said = process.communicate(timeout=100)
        lab.close()
    assert process.returncode == 1, out + said
    error = json.loads(out)
    assert f"({here}: No such file or directory)" in error["remedy"], error
    assert "below / on that host" in error["remedy"] and "write whole paths" in error["remedy"]
