"""Hosts of a test with folders, and agents, of their own: namespaces where it may make them, else processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waiting import WITHIN_S, await_that

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
PACE = Path(__file__).with_name("pace.py")
LOADS_WITHIN_S = 150.0
"""A command, its agents, their workers and servers are started before that: 10 s alone, and 45 s with a load average of
15 on two CPUs."""
BACK_WITHIN_S = 10.0
"""After a coordinator that was killed, all hosts are as before."""

STUDY = """
[study]
name = "paced"
question = "How far will it go?"
[target]
kind = "url"
authorised = true
owner = "this test"
[target.settings]
url = "http://{address}:{port}"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = {levels}
[measure]
warmup = "{warmup}"
window = "{window}"
blocks = {{ min = {blocks}, max = {blocks} }}
budget = "120s"
{more}
"""

HOST = """
[[host]]
name = "{name}"
roles = {roles}
address = "{address}"
loadframe = "{program}"
authorised = true
owner = "this test"
{way}
may_change = {may_change}
"""


@dataclass
class Station:
    """A host: its agent runs `before` (Python code) first, and its number is in the file pid."""

    name: str
    folder: Path
    roles: Sequence[str] = ("driver",)
    address: str = "127.0.0.1"
    by: Sequence[str] = ("env",)
    before: str = "pass"
    wrapped: str = "exec"
    ssh: str = ""
    may_change: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.folder.chmod(0o755)
        for part in ("state", "scratch"):
            (self.folder / part).mkdir()
            (self.folder / part).chmod(0o755)

    @property
    def mark(self) -> str:
        return f"LOADFRAME_TEST_STATION={self.folder}"

    def row(self) -> str:
        """Of the fleet file; its program is written."""
        program, code = self.folder / "loadframe", self.folder / "agent.py"
        code.write_text(
            f"import os, pathlib\npathlib.Path({str(self.folder / 'pid')!r}).write_text(str(os.getpid()) + chr(10))\n"
            f"{self.before}\nfrom loadframe_fleet.agent import main\nmain()\n"
        )
        given = {
            "LOADFRAME_STATE": self.folder / "state",
            "LOADFRAME_SCRATCH": self.folder / "scratch",
            **self.environment,
        }
        lines = [f"export {name}='{value}'" for name, value in given.items()]
        lines += [f"export {self.mark}", f"{self.wrapped} {sys.executable} -P {code}"]
        program.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        program.chmod(0o755)
        way = f'ssh = "{self.ssh}"' if self.ssh else f"by = {json.dumps(list(self.by))}"
        return HOST.format(
            name=self.name, roles=json.dumps(list(self.roles)), address=self.address, program=program, way=way,
            may_change=json.dumps(list(self.may_change)),
        )  # fmt: skip

    @property
    def agent(self) -> int:
        """Its agent's number, once that runs."""
        path = self.folder / "pid"
        await_that(lambda: path.exists() and path.read_text().endswith("\n"), f"an agent on {self.name}")
        return int(path.read_text())

    def processes(self, words: str = "") -> list[int]:
        """Those that its agent has started, and itself, whose command has these words."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                theirs = self.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if theirs and command and words in command:
                found.append(int(folder.name))
        return found

    @property
    def loads(self) -> bool:
        """Whether its driver makes requests at this moment."""
        return any(path.stat().st_size for path in self.folder.glob("scratch/loadframe-*/step-*/requests-*.log"))

    @property
    def as_before(self) -> bool:
        """Nothing runs, nothing is left."""
        left = [*self.folder.glob("scratch/loadframe-*"), *self.folder.glob("state/*/*.json")]
        return not left and not self.processes()


def said_until_now(command: subprocess.Popen[str]) -> str:
    """What it has printed as errors, and where it is; it goes on."""
    assert command.stderr is not None
    os.set_blocking(command.stderr.fileno(), False)
    try:
        said = os.read(command.stderr.fileno(), 1 << 16)
    except BlockingIOError:
        said = b""
    state = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return f"process {command.pid} is in state {state}; it said: {said.decode(errors='replace')}"


@contextmanager
def paced(seconds: float, address: str = "127.0.0.1", within: Sequence[str] = (), size: int = 100) -> Iterator[int]:
    """The service, as long as it runs: its port."""
    words = [*within, sys.executable, str(PACE), address, "0", str(seconds), str(size)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@dataclass
class Laboratory:
    """Stations, and a study of what listens at an address, measured from here or from within a namespace."""

    folder: Path
    stations: Sequence[Station]
    address: str = "127.0.0.1"
    port: int = 0
    within: Sequence[str] = ()
    about: str = ""
    network: Any = None
    _begun: list[subprocess.Popen[str]] = field(default_factory=list)

    def close(self) -> None:
        """Nothing that was begun stays."""
        for each in self._begun:
            each.kill()
            each.communicate()

    def study(self, levels: str, window: str = "1s", blocks: int = 2, warmup: str = "300ms", more: str = "") -> Path:
        path = self.folder / "study.toml"
        path.write_text(
            STUDY.format(
                address=self.address, port=self.port, levels=levels, window=window, blocks=blocks, warmup=warmup,
                more=more,
            )
        )  # fmt: skip
        return path

    def fleet(self) -> Path:
        path = self.folder / "fleet.toml"
        rows = "".join(each.row() for each in self.stations)
        path.write_text(f'[fleet]\nname = "laboratory"\n{self.about}\n{rows}')
        return path

    def begin(
        self, levels: str, window: str = "1s", verb: str = "measure", study: str = "", **more: Any
    ) -> subprocess.Popen[str]:
        """The command; stdout has its JSON. study: the text of another one."""
        path = self.study(levels, window, **more)
        if study:
            path.write_text(study)
        words = [verb, str(path), "--fleet", str(self.fleet())]
        words += ["--runs", str(self.folder / "runs"), "--json"]
        process = subprocess.Popen(
            [*self.within, LOADFRAME, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._begun.append(process)
        return process

    def measured(self, levels: str, window: str = "1s", code: int = 0, **more: Any) -> dict[str, Any]:
        """Its answer."""
        process = self.begin(levels, window, **more)
        out, said = process.communicate(timeout=180)
        assert process.returncode == code, f"{out}\n{said}"
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Of the fleet, in the last run."""
        (*_, last) = sorted((self.folder / "runs").iterdir())
        return [json.loads(line) for line in (last / "fleet.jsonl").read_text().splitlines()]

    def await_load(self) -> None:
        """Until all drivers make requests. What the command says is told where it has ended instead, or none come."""
        drivers = [each for each in self.stations if "driver" in each.roles]
        command = self._begun[-1]
        try:
            await_that(
                lambda: all(each.loads for each in drivers), "requests of all drivers", LOADS_WITHIN_S, of=command
            )
        except AssertionError as error:
            said = said_until_now(command) if command.poll() is None else "\n".join(command.communicate())
            raise AssertionError(f"{error}\n{said}") from None

    def await_as_before(self, within_s: float = WITHIN_S) -> None:
        """Until nothing is left on any host."""
        until = time.monotonic() + within_s
        for each in self.stations:
            left_s = until - time.monotonic()
            await_that(lambda each=each: each.as_before, f"{each.name} as before", left_s)  # type: ignore[misc]

    def kill(self, process: subprocess.Popen[str]) -> None:
        """End the coordinator by `kill -9`; all hosts are as before within ten seconds."""
        process.kill()
        until = time.monotonic() + BACK_WITHIN_S
        process.communicate()
        self.await_as_before(until - time.monotonic())
