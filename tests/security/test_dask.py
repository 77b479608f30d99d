"""dask, whose scheduler and workers Loadframe starts on this machine: it runs nothing that lies in the folder of the
caller or in the common temporary folder, follows no link there, removes nothing there, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stations import await_that

from loadframe.host import identity
from loadframe.host.privilege import free_user

ENTER = """
import json, os, sys
from pathlib import Path
from loadframe_fleet.declaration import load
from loadframe_fleet.engine import DaskEngine

def place(dask_worker=None, dask_scheduler=None):
    return {"path": sys.path, "folder": os.getcwd(), "safe": os.environ.get("PYTHONSAFEPATH"), "user": os.getuid()}

if __name__ == "__main__":
    with DaskEngine(load(Path(__file__).with_name("fleet.toml"))) as engine:
        client = engine._client
        nodes = [place(), client.run_on_scheduler(place), *client.run(place).values()]
        print(json.dumps(nodes), flush=True)
        if sys.argv[1:]:
            sys.stdin.read()
"""
HOSTS = "".join(f'[[host]]\nname = "{name}"\nroles = ["trial"]\nworker = "{name}"\n' for name in ("one", "two"))
PLANTED = ("multiprocessing", "dask", "distributed", "tornado", "loadframe", "json", "sitecustomize", "usercustomize")
SECRET = b"eighteen bytes ..."


class Place:
    """A caller's folder and a common temporary folder, both with what a stranger planted; and folders of ours."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.caller, self.common, self.ours, self.ran = (top / name for name in ("caller", "common", "ours", "ran"))
        for folder in (self.caller, self.common, self.ours, self.ours / "state", self.ours / "scratch"):
            folder.mkdir()
        self.common.chmod(0o1777)
        self.secret, self.kept = self.ours / "secret", self.ours / "kept"
        self.secret.write_bytes(SECRET)
        self.kept.mkdir()
        (self.ours / "enter.py").write_text(ENTER)
        (self.ours / "fleet.toml").write_text(f'[fleet]\nname = "laboratory"\n{HOSTS}')
        self._plant()

    def _plant(self) -> None:
        says = f"import os; open({str(self.ran)!r}, 'a').write(f'{{__name__}} {{os.getuid()}}\\n')\n"
        scratch = self.common / "dask-scratch-space"
        for folder in (scratch, self.common / f"dask-scratch-space-{os.getuid()}"):
            folder.mkdir()
            for name in ("global.lock", "purge.lock", "worker.dirlock"):
                (folder / name).symlink_to(self.secret)
            (folder / "worker").mkdir()
            (folder / "worker" / "of-a-stranger").touch()
            (folder / "kept").symlink_to(self.kept)
            (folder / "kept.dirlock").touch()
        for folder in (self.caller, scratch):
            for name in PLANTED:
                (folder / f"{name}.py").write_text(says)
        self.planted = self.seen()
        if os.geteuid() == 0 and (user := free_user()) is not None:
            for path in (self.caller, scratch, *self.caller.rglob("*"), *scratch.rglob("*")):
                os.chown(path, user, user, follow_symlinks=False)

    def seen(self) -> list[str]:
        """What is in the common temporary folder."""
        return sorted(str(path.relative_to(self.common)) for path in self.common.rglob("*"))

    def left(self) -> list[Path]:
        """Of ours, in the folders of leases."""
        return [*(self.ours / "scratch").iterdir(), *(self.ours / "state").glob("leases/*.json")]

    def enter(self, *words: str) -> subprocess.Popen[str]:
        own = {
            "TMPDIR": self.common,
            "LOADFRAME_STATE": self.ours / "state",
            "LOADFRAME_SCRATCH": self.ours / "scratch",
        }
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        return subprocess.Popen(
            [sys.executable, self.ours / "enter.py", *words], cwd=self.caller, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**environment, **{k: str(v) for k, v in own.items()}},
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    for process in identity.naming(str(tmp_path)):
        identity.end_all([process], 0.5)


@pytest.mark.long
def test_dask_runs_follows_and_removes_nothing_of_a_stranger(place: Place) -> None:
    process = place.enter()
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert not place.ran.exists(), f"what a stranger planted was run: {place.ran.read_text()}"
    assert place.secret.read_bytes() == SECRET, "a link was followed"
    assert place.kept.exists() and place.seen() == place.planted, "and nothing was made or removed there"
    own, *nodes = json.loads(out)
    assert len(nodes) == 3
    for node in nodes:
        open_to_others = [each for each in node["path"] if Path(each).is_relative_to(place.common) or each == ""]
        assert not open_to_others, "others write to where modules are looked for"
        assert node["folder"] == "/" and node["safe"]
    assert not [each for each in own["path"] if Path(each).is_relative_to(place.ours / "scratch")]
    assert place.left() == []


@pytest.mark.long
def test_after_ctrl_c_nothing_of_dask_is_left(place: Place) -> None:
    process = place.enter("wait")
    assert process.stdout is not None and json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert place.seen() == place.planted
    assert place.left() == []
    await_that(lambda: not identity.naming(str(place.top)), "its processes have ended")


@pytest.mark.long
def test_after_a_kill_the_next_command_removes_what_is_left_of_dask(place: Place) -> None:
    process = place.enter("wait")
    assert process.stdout is not None and json.loads(process.stdout.readline())
    assert place.left(), "it has a lease"
    process.kill()
    process.communicate(timeout=60)
    await_that(lambda: not identity.naming(str(place.top)), "its processes have ended")
    swept = "from loadframe.host.leftovers import sweep; print(*sweep())"
    own = {"LOADFRAME_STATE": str(place.ours / "state"), "LOADFRAME_SCRATCH": str(place.ours / "scratch")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", swept], cwd="/", env={**os.environ, **own}, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert "removed" in done.stdout
    assert place.left() == [] and place.seen() == place.planted
