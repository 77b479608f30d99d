"""A second user of the machine, without rights, tries everything that a run of root's uses while it runs (intruder.py):
gets nothing, breaks nothing. What cannot be kept from it stands in KNOWN, by name."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadframe.host import identity
from loadframe.host.privilege import free_user
from loadframe.runs.folder import RunFolder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a run of root's, and a second user")

INTRUDER = Path(__file__).with_name("intruder.py")
STUDY = """
[study]
name = "watched"
question = "Who else is here?"
[target]
kind = "{kind}"
{target}
[workload]
kind = "{workload}"
[workload.options]
{options}
[load]
axis = "{axis}"
levels = [2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = {{ min = 2, max = 2 }}
budget = "30s"
profile = "off"
"""
STUDIES = {
    "sqlite": {"workload": "job-queue", "axis": "concurrency", "options": "backlog = 20"},
    "mariadb": {"workload": "oltp", "axis": "concurrency", "options": "rows = 100"},
    "postgres": {"workload": "pgbench", "axis": "clients", "options": "scale = 1"},
    "bulk-loader": {"workload": "bulk-ingest", "axis": "pipelines", "options": "file_size_kb = 64"},
    "varnish": {"workload": "http", "axis": "concurrency", "options": "objects = 10"},
    "squid": {"workload": "http", "axis": "concurrency", "options": "objects = 10"},
}
KNOWN = {
    "varnish": {"GET /objects/0/0"},
    "squid": {"GET /objects/0/0", "GET /squid-internal-mgr/config"},
}
"""What cannot be kept from a second user, or is not: a web server on 127.0.0.1 answers whoever asks, with made-up
objects; Squid tells its configuration, which has no secret. Other kinds of target listen on no port."""
REFUSED = ("HTTP/1.1 4", "HTTP/1.1 5", "107 ")
"""107: Varnish's own port asks for its secret (varnish-cli(7))."""
SECRET = re.compile(rb"(?:password=|PASSWORD '|IDENTIFIED BY '|PGPASSWORD=)([0-9a-f]{16,})|:([0-9a-f]{32})$", re.M)


@dataclass
class Place:
    """What a run uses, and the second user's own. folder: as /var/tmp is, for everybody; others are root's."""

    top: Path
    uid: int
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        return self.top / "scratch"

    @property
    def state(self) -> Path:
        return self.top / "state"

    @property
    def runs(self) -> Path:
        return self.top / "runs"

    @property
    def theirs(self) -> Path:
        """The second user's."""
        return self.top / "theirs"

    @property
    def ran(self) -> Path:
        """Where what was planted says that it was run."""
        return self.theirs / "ran"


@pytest.fixture
def place() -> Iterator[Place]:
    """Folders that a stranger can come to, as /var/tmp, and a working folder that is the stranger's, full of traps."""
    uid = free_user()
    if uid is None:
        pytest.skip("this machine gives no second user")
    top = Path(tempfile.mkdtemp(prefix="lf-second-", dir="/var/tmp"))
    place = Place(top, uid)
    try:
        top.chmod(0o755)
        place.scratch.mkdir()
        place.scratch.chmod(0o1777)
        place.runs.mkdir(mode=0o755)
        place.theirs.mkdir()
        _set_traps(place)
        for path in (place.theirs, *place.theirs.rglob("*")):
            os.chown(path, uid, uid)
        place.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LOADFRAME_")},
            "LOADFRAME_STATE": str(place.state),
            "LOADFRAME_SCRATCH": str(place.scratch),
        }
        yield place
        ours = [path for path in place.scratch.rglob("*") if path.lstat().st_uid != uid]
        assert ours == [], "nothing is left of the run"
    finally:
        for process in identity.naming(top.name):
            identity.end_all([process], 0.5)
        shutil.rmtree(top)
        for path in Path("/dev/shm").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_uid == uid:
                    path.unlink()


def _set_traps(place: Place) -> None:
    """What is looked for by name, each of which says so when it is run."""
    says = f"open({str(place.ran)!r}, 'a').write(f'{{__name__}} {{__import__(\"os\").getuid()}}\\n')\n"
    for name in ("json", "argparse", "struct", "sqlite3", "sitecustomize", "usercustomize", "loadframe", "vl_convert"):
        (place.theirs / f"{name}.py").write_text(says)
    for name in ("x", "ffi", "oltp_common", "driver"):
        (place.theirs / f"{name}.lua").write_text(f"io.open('{place.ran}', 'a'):write('{name}.lua\\n')\n")
    for name in ("sysbench", "wrk", "perf", "mariadbd", "varnishadm", "cc"):
        (place.theirs / name).write_text(f"#!/bin/sh\necho $0 $(id -u) >> {place.ran}\n")
        (place.theirs / name).chmod(0o755)
    for name in ("pyproject.toml", "matplotlibrc", ".perfconfig", ".my.cnf", "loadframe.toml"):
        (place.theirs / name).write_text("[client]\nuser = intruder\n")
    (place.theirs / "loot").touch()


@dataclass
class Watched:
    """A run that was watched. managed: what the intruder did, as pairs. secrets: as root saw them meanwhile."""

    code: int
    answer: dict[str, Any]
    said: str
    managed: list[tuple[str, str]]
    tried: dict[str, int]
    seen: dict[str, int]
    secrets: set[bytes]


def _run_watched(place: Place, study: str, command: list[str]) -> Watched:
    path = place.top / "study.toml"
    path.write_text(study)
    with (
        (place.top / "out").open("wb") as out,
        (place.top / "err").open("wb") as err,
        subprocess.Popen(
            [*command, "measure", str(path), "--runs", str(place.runs), "--json"],
            cwd=place.theirs, env=place.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
        ) as run,
        _intruding(place, run.pid) as intruder,
    ):  # fmt: skip
        secrets = _watch(place, run, intruder)
        assert intruder.stdin is not None
        assert intruder.stdout is not None
        intruder.stdin.close()
        lines = [json.loads(line) for line in intruder.stdout.read().splitlines()]
    assert intruder.wait() == 0
    last = lines.pop()
    out_text, said = ((place.top / name).read_text() for name in ("out", "err"))
    answer = json.loads(out_text) if run.returncode == 0 else {}
    managed = [(line["managed"], line["where"]) for line in lines]
    return Watched(run.returncode, answer, said, managed, last.pop("tried"), last, secrets)


@contextlib.contextmanager
def _intruding(place: Place, pid: int) -> Iterator[subprocess.Popen[bytes]]:
    folders = [place.scratch, place.state, place.runs]
    arguments = [str(place.uid), str(pid), str(place.theirs / "loot"), str(place.theirs), *map(str, folders)]
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(INTRUDER), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def _watch(place: Place, run: subprocess.Popen[bytes], intruder: subprocess.Popen[bytes]) -> set[bytes]:
    """Until the run ends: tell the intruder its ports, and look, as root, for its secrets."""
    told: set[int] = set()
    secrets: set[bytes] = set()
    while run.poll() is None:
        for port in _listening(run.pid) - told:
            told.add(port)
            assert intruder.stdin is not None
            intruder.stdin.write(f"{port}\n".encode())
            intruder.stdin.flush()
        with contextlib.suppress(OSError):  # what is there comes and goes
            for path in place.scratch.glob("loadframe-*/*/*"):
                if path.is_file() and path.stat().st_size < 1 << 16:
                    secrets |= {one or other for one, other in SECRET.findall(path.read_bytes())}
            for path in place.scratch.glob("loadframe-*/varnish/work/_.secret"):
                secrets.add(path.read_bytes())
        time.sleep(0.1)
    return secrets


def _listening(pid: int) -> set[int]:
    """The TCP ports on which a process or one that it has started listens."""
    family, inodes = [pid], set()
    for member in family:
        family += identity.children(member)
        with contextlib.suppress(OSError):
            inodes |= {str(link.readlink()) for link in Path(f"/proc/{member}/fd").iterdir()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def _check(place: Place, watched: Watched, kind: str) -> None:
    assert watched.code == 0, watched.said
    assert not place.ran.exists(), f"what a stranger has planted was run: {place.ran.read_text()}"
    ports = [(what, said) for what, said in watched.managed if what.startswith("port: ")]
    others = [one for one in watched.managed if one not in ports]
    assert others == []
    for what, said in ports:
        asked = what.removeprefix("port: ")
        assert asked in KNOWN.get(kind, ()) or said == "" or said.startswith(REFUSED), (what, said)
    assert (watched.seen["ports"] > 0) == (kind in KNOWN)
    loot = (place.theirs / "loot").read_bytes()
    assert not [secret for secret in watched.secrets if secret in loot], "a secret was to be read"
    assert watched.answer["schema"].startswith("loadframe.")
    (run,) = (RunFolder.open(path) for path in place.runs.iterdir())
    steps = run.steps()
    assert len(steps) >= 2
    assert all(step.requests > 0 and step.errors == 0 for step in steps)
    strangers = [path for top in (place.runs, place.state) for path in top.rglob("*") if path.lstat().st_uid != 0]
    assert strangers == []


def _saw_enough(watched: Watched) -> None:
    """That the intruder was there, and tried."""
    assert watched.seen["processes"] >= 3
    assert watched.seen["leases"] == 1
    for what in ("proc environ", "signal", "trace", "reach", "rename", "plant"):
        assert watched.tried.get(what, 0) > 0, watched.tried


def _study(kind: str) -> str:
    target = "shards = 1" if kind == "bulk-loader" else ""
    return STUDY.format(kind=kind, target=target, **STUDIES[kind])


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("kind", list(STUDIES))
def test_a_second_user_gets_nothing_and_breaks_nothing(place: Place, kind: str) -> None:
    command = [str(Path(sys.executable).with_name("loadframe"))]
    watched = _run_watched(place, _study(kind), command)
    _check(place, watched, kind)
    _saw_enough(watched)
    if kind in ("mariadb", "postgres", "bulk-loader", "varnish"):
        assert watched.secrets, "there was something to find"
    if kind in KNOWN:
        assert {f"port: {asked}" for asked in KNOWN[kind]} <= {what for what, _ in watched.managed}
    (run,) = (RunFolder.open(path) for path in place.runs.iterdir())
    assert "no rights" in run.host().facts["load driver"]


SECRET_OF_OURS = b"password=0123456789abcdef0123456789abcdef\n"


@pytest.mark.timeout(60)
def test_the_intruder_finds_what_is_open(place: Place) -> None:
    """The same intruder, where a folder is for everybody, a file can be read, and a process is its own."""
    lease = place.scratch / "loadframe-0123456789ab"
    (lease / "step-00001").mkdir(parents=True)
    (lease / "step-00001").chmod(0o777)
    (lease / "mariadb").mkdir()
    (lease / "mariadb/workload.cnf").write_bytes(SECRET_OF_OURS)
    with subprocess.Popen(["sleep", "60"], user=place.uid, group=place.uid, extra_groups=[]) as theirs:
        with _intruding(place, theirs.pid) as intruder:
            assert intruder.stdin is not None
            assert intruder.stdout is not None
            managed: set[str] = set()
            while not {"plant", "reach", "signal", "proc environ"} <= managed:
                managed.add(json.loads(intruder.stdout.readline())["managed"])
            intruder.stdin.close()  # it ends what it is at
            intruder.stdout.read()
            assert intruder.wait() == 0
        theirs.kill()
    assert SECRET_OF_OURS in (place.theirs / "loot").read_bytes()
    assert (lease / "step-00001/json.py").is_symlink()
    shutil.rmtree(lease)
