"""What the libraries that run code or make files for us do while they work, as strace sees it: they open no file for
writing outside the folders of lease, run and state, and start no Python that takes modules from its working folder.
docs/dependencies.md has what each of them does."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO
from urllib.request import Request, urlopen

import pytest

from loadframe.host import identity
from loadframe.host.environment import SAFE_PATH, located, python

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
RUNS = Path(__file__).parents[1] / "data/runs"
STRACE = ("-ff", "-y", "-v", "-s", "65536", "-e", "trace=open,openat,creat,execve", "-e", "signal=none")
WORD = r'"((?:[^"\\]|\\.)*)"'
OPENED = re.compile(rf"(?:open|openat|creat)\([^\"]*{WORD}, ([A-Z_|0-9x]+).*\) = \d+<(.*)>$")
EXECUTED = re.compile(rf"execve\({WORD}, (\[(?:{WORD}(?:, )?)*\]), (\[(?:{WORD}(?:, )?)*\])\) = 0$")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
NOT_FILES = re.compile(r"/dev/(null|tty|ptmx|pts/\d+)|/proc/.*")
SEMAPHORE = re.compile(r"/dev/shm/sem\.[\w-]+")
"""Of multiprocessing (sem_overview(7)): names at random, made new, that are followed by no link."""

DASK = """
import sys
from pathlib import Path
from loadframe_fleet.declaration import load
from loadframe_fleet.engine import DaskEngine

if __name__ == "__main__":
    asked = {"study": {"no": "study"}, "states": [], "order": [], "floors": [], "block": 1, "within_s": 60.0}
    with DaskEngine(load(Path(sys.argv[1]))) as engine:
        engine.begin("one", "a-task", asked)
        while (came := engine.came(1.0)) is None:
            pass
    print(came.answer["error"])
"""
HOSTS = "".join(f'[[host]]\nname = "{name}"\nroles = ["trial"]\nworker = "{name}"\n' for name in ("one", "two"))
LOCUST = """
import sys
from pathlib import Path
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.workloads import registry

options = {"file": sys.argv[1], "startup_s": 20}
made = registry.make("locust", options, Allowance(user=US), axis="users")
driver = made.start(Endpoint("url", "127.0.0.1:8099"), 2, Path(sys.argv[2]), 0.5)
assert driver.wait(100)
driver.kill()
assert len(driver.requests())
"""
LOCUSTFILE = """
import time
import beside
from locust import User, events, task

class Own(User):
    @task
    def work(self):
        time.sleep(0.01)
        events.request.fire(request_type=beside.NAME, name="job", response_time=9.0, response_length=7, exception=None)
"""
TERMINAL = """
import os, pty, sys, threading
from pathlib import Path
from loadframe.cli.progress import Drawing

class Plain:
    def __getattr__(self, name):
        return lambda *words: None

ours, terminal = pty.openpty()
for each in (0, 1, 2):
    os.dup2(terminal, each)
threading.Thread(target=lambda: [os.read(ours, 1 << 16) for _ in iter(int, 1)], daemon=True).start()
drawing = Drawing(Plain())
drawing.follow(Path(sys.argv[1]))
drawing.close()
os._exit(0)
"""


@dataclass
class Seen:
    """written: what was opened for writing; unsafe: Python that was started without the safe path; started: how many
    programs were."""

    written: set[str] = field(default_factory=set)
    unsafe: list[str] = field(default_factory=list)
    started: int = 0


class Place:
    """Folders of a command: of lease, run and state; of its user; and the one for everybody's temporary files."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.state, self.scratch, self.runs = (top / name for name in ("state", "scratch", "runs"))
        self.caller, self.home, self.common = (top / name for name in ("caller", "home", "common"))
        for each in (self.state, self.scratch, self.runs, self.caller, self.home, self.common):
            each.mkdir()
        (self.caller / "locustfile.py").write_text(LOCUSTFILE)
        (self.caller / "beside.py").write_text("NAME = 'queue'\n")
        (top / "fleet.toml").write_text(f'[fleet]\nname = "laboratory"\n{HOSTS}')

    def run_folder(self, name: str) -> str:
        """Of that name, filled."""
        return str(shutil.copytree(RUNS / name, self.runs / name, dirs_exist_ok=True))

    def script(self, text: str) -> str:
        """A file with it."""
        path = self.top / "script.py"
        path.write_text(text)
        return str(path)

    def traced(self, command: list[str], act: Callable[[IO[str]], None]) -> Seen:
        """What the command and all that it starts did. act: is given what it prints, while it runs."""
        if (strace := located("strace")) is None:
            if os.environ.get("LOADFRAME_REQUIRE_SERVERS"):
                pytest.fail("a traced test would be skipped; missing Debian package: strace")
            pytest.skip("missing Debian package: strace")
        traces = self.top / "traces"
        traces.mkdir()
        left_out = (SAFE_PATH, "PYTHONDONTWRITEBYTECODE")
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        environment |= {"LOADFRAME_STATE": str(self.state), "LOADFRAME_SCRATCH": str(self.scratch)}
        environment |= {"HOME": str(self.home), "TMPDIR": str(self.common)}
        with (self.top / "said").open("w+") as said:
            process = subprocess.Popen(
                [strace, *STRACE, "-o", str(traces / "of"), *command], cwd=self.caller, env=environment,
                stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip
            assert process.stdout is not None
            with process, process.stdout:
                guard = threading.Timer(200, process.kill)
                guard.start()
                act(process.stdout)
                code = process.wait()
                guard.cancel()
            said.seek(0)
            assert code == 0, said.read()[-2000:]
        seen = Seen()
        for path in sorted(traces.iterdir()):
            for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
                _take(seen, line, command)
        return seen

    def allows(self, path: str) -> bool:
        """Whether a file may be written there; what is compiled of modules lies beside them, where its owner writes."""
        compiled = "__pycache__" in path and not Path(path).is_relative_to(self.top)
        ours = any(Path(path).is_relative_to(each) for each in (self.state, self.scratch, self.runs))
        return ours or compiled or bool(NOT_FILES.fullmatch(path))


def _take(seen: Seen, line: str, command: list[str]) -> None:
    if (opened := OPENED.match(line)) is not None:
        _, flags, path = opened.groups()
        if WRITES.search(flags) and "O_TMPFILE" not in flags:
            seen.written.add(path)
    elif (executed := EXECUTED.match(line)) is not None:
        program, arguments, variables = executed.group(1), executed.group(2), executed.group(4)
        words, given = re.findall(WORD, arguments), re.findall(WORD, variables)
        seen.started += 1
        if words == command or not Path(program).name.startswith("python"):
            return
        options = takewhile(lambda word: word.startswith("-") and word not in ("-c", python("")[2]), words[1:])
        if not {"-P", "-I"} & {*options} and not any(each.startswith(f"{SAFE_PATH}=") for each in given):
            seen.unsafe.append(" ".join(words))


def _read(printed: IO[str]) -> None:
    printed.read()


def _look_at_page(place: Place) -> Callable[[IO[str]], None]:
    def look(printed: IO[str]) -> None:
        address = re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", printed.readline())
        assert address is not None
        page, _, token = address[0].partition("#token=")
        for path in ("", "api/runs", "metrics"):
            asked = Request(f"{page}{path}", headers={"Authorization": f"Bearer {token}"})
            assert urlopen(asked, timeout=60).status == 200
        for process in identity.naming(str(place.runs)):
            if not Path(f"/proc/{process.pid}/exe").readlink().name.startswith("strace"):
                os.kill(process.pid, signal.SIGINT)
        printed.read()

    return look


CASES: dict[str, Callable[[Place], tuple[list[str], Callable[[IO[str]], None]]]] = {
    "dask": lambda at: ([sys.executable, "-P", at.script(DASK), str(at.top / "fleet.toml")], _read),
    "uvicorn": lambda at: ([LOADFRAME, "serve", str(Path(at.run_folder("job-queue")).parent)], _look_at_page(at)),
    "locust": lambda at: (
        [sys.executable, "-P", at.script(LOCUST), str(at.caller / "locustfile.py"), str(at.runs)],
        _read,
    ),
    "textual": lambda at: ([sys.executable, "-P", at.script(TERMINAL), at.run_folder("job-queue")], _read),
    "vl-convert": lambda at: ([LOADFRAME, "report", at.run_folder("investigation")], _read),
    "polars": lambda at: (
        [LOADFRAME, "export", at.run_folder("job-queue"), "--format", "steps.parquet", "--to", f"{at.runs}/x.parquet"],
        _read,
    ),
}
STARTED = {"dask": 7, "uvicorn": 1, "locust": 3, "textual": 2, "vl-convert": 1, "polars": 1}
"""At least; with the command itself."""


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_dependency_writes_only_where_we_keep_things_and_starts_python_with_the_safe_path(
    name: str, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    seen = place.traced(*CASES[name](place))
    assert seen.started >= STARTED[name], "it did what it is traced for"
    assert seen.unsafe == []
    made = {path for path in seen.written if SEMAPHORE.fullmatch(path)}
    assert not made or name == "dask"
    assert not [path for path in made if Path(path).exists()], "none is left"
    assert sorted(path for path in seen.written - made if not place.allows(path)) == []
    assert [*place.common.iterdir(), *place.home.iterdir()] == []
    assert sorted(path.name for path in place.caller.iterdir()) == ["beside.py", "locustfile.py"]


@pytest.mark.parametrize(
    ("given", "is_safe"),
    [
        ('["python3", "-P", "-c", "x"], ["A=b"]', True),
        ('["python3", "-c", "x"], ["A=b", "PYTHONSAFEPATH=1"]', True),
        ('["python3", "-c", "x", "-P"], ["A=\\"b"]', False),
        ('["python3"], []', False),
    ],
)
def test_python_without_the_safe_path_is_seen(given: str, is_safe: bool) -> None:
    seen = Seen()
    _take(seen, f'execve("/usr/bin/python3", {given}) = 0', [])
    _take(seen, 'openat(AT_FDCWD</>, "a/b", O_WRONLY|O_CREAT, 0666) = 3</a/b>', [])
    assert (seen.started, not seen.unsafe, seen.written) == (1, is_safe, {"/a/b"})


def test_a_page_has_a_section_for_each_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs/dependencies.md").read_text()
    for name in CASES:
        assert re.search(rf"^## .*{re.escape(name)}", page, re.M | re.I), name
