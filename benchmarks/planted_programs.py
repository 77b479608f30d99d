"""The programs of the planted services: what a study needs of this machine, compiling them, and starting one as its
study says without Loadframe's help.

A study of benchmarks/planted/ with kind = "service" may name these places: {services} (the folder of the programs),
{build} (what is compiled of them), {python} (this interpreter) and {bin} (the folder of its commands).
"""

from __future__ import annotations

import configparser
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).with_name("planted")
SERVICES = STUDIES / "services"
BUILT = SERVICES / "build"
COMPILERS = {".java": "javac", ".go": "go"}
POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
READY_WITHIN_S, STOP_WITHIN_S = 30.0, 10.0
Tables = dict[str, Any]
Settings = Mapping[str, Any]


def expanded(text: str) -> str:
    """A study's text with the places on this machine: {services}, {build}, {python} and {bin}, its folder."""
    places = {"services": SERVICES, "build": BUILT, "python": sys.executable, "bin": Path(sys.executable).parent}
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", str(place))
    return text


def studies() -> dict[str, Tables]:
    """The studies of services by their names, as TOML has them."""
    read = {path.stem: tomllib.loads(expanded(path.read_text())) for path in sorted(STUDIES.glob("*.toml"))}
    return {name: tables for name, tables in read.items() if tables["target"]["kind"] == "service"}


def lacking(tables: Tables) -> list[str]:
    """The programs that a study's services need and this machine lacks."""
    wanted = set()
    for target in (tables["target"], *tables["target"].get("with", ())):
        if target["kind"] == "postgres":
            wanted.add(str(POSTGRESQL[-1] / "initdb") if POSTGRESQL else "initdb")
            continue
        words = target["command"]
        built = [word for word in words if str(BUILT) in word]
        wanted.add("javac" if words[0] == "java" else "go" if built else words[0])
    return sorted(name for name in wanted if shutil.which(name) is None)


def build() -> None:
    """Compile what is younger than its result, with the compilers that are there."""
    BUILT.mkdir(exist_ok=True)
    for source in sorted(SERVICES.iterdir()):
        compiler = COMPILERS.get(source.suffix)
        made = BUILT / (source.stem if compiler == "go" else f"{source.stem}.class")
        if compiler is None or shutil.which(compiler) is None:
            continue
        if made.exists() and made.stat().st_mtime >= source.stat().st_mtime:
            continue
        with tempfile.TemporaryDirectory(dir=BUILT) as aside:
            into = ["-d", aside] if compiler == "javac" else ["build", "-o", f"{aside}/{source.stem}"]
            subprocess.run([compiler, *into, str(source)], check=True, cwd=SERVICES)
            for result in Path(aside).iterdir():
                result.replace(BUILT / result.name)


def free_port() -> int:
    """One that no program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


@dataclass(frozen=True)
class Running:
    """A service that answers."""

    port: int
    process: subprocess.Popen[bytes]

    def config(self) -> dict[str, Any]:
        """What it says of its settings."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/config", timeout=5) as answer:
            said: dict[str, Any] = json.load(answer)
            return said


@contextmanager
def started(tables: Tables, settings: Settings, files: int | None = None) -> Iterator[Running]:
    """A service and its helpers, as a study says. files: its limit of open files. RuntimeError where it does not
    answer."""
    target = tables["target"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        names: dict[str, Any] = {"data": folder}
        environment = dict(os.environ)
        for helper in target.get("with", ()):
            if helper["kind"] == "postgres":
                environment["DATABASE_URL"] = stack.enter_context(postgres(folder))
            else:
                names[f"{helper['name']}.port"] = stack.enter_context(started({"target": helper}, {})).port
        yield stack.enter_context(_alone(target, dict(settings), names, environment, files))


@contextmanager
def _alone(
    target: Tables, settings: Settings, names: dict[str, Any], environment: dict[str, str], files: int | None
) -> Iterator[Running]:
    names = {**names, "port": free_port()}
    specs: Mapping[str, Tables] = target.get("setting", {})
    for path in {spec["file"] for spec in specs.values() if spec["apply"] == "file"}:
        keys = {spec["key"]: settings[name] for name, spec in specs.items() if spec.get("file") == path}
        write(Path(filled(path, names)), keys)
    environment |= {spec["name"]: str(settings[name]) for name, spec in specs.items() if spec["apply"] == "environment"}
    command = [filled(word, {**names, **settings}) for word in target["command"]]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, preexec_fn=lambda: _limit(files), cwd=names["data"]
        )
        try:
            running = Running(names["port"], process)
            _await(running, log)
            for name, spec in specs.items():
                if spec["apply"] == "command":
                    change = [filled(word, {**names, "value": settings[name]}) for word in spec["command"]]
                    subprocess.run(change, check=True, stdout=log)
            yield running
        finally:
            process.terminate()
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _limit(files: int | None) -> None:
    if files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _await(running: Running, log: Any) -> None:
    end_s = time.monotonic() + READY_WITHIN_S
    while running.process.poll() is None and time.monotonic() < end_s:
        try:
            running.config()
            return
        except (OSError, urllib.error.URLError):
            time.sleep(0.02)
    log.seek(0)
    raise RuntimeError(f"{running.process.args!r} does not answer: {log.read().decode(errors='replace')[-2000:]}")


def filled(word: str, names: Mapping[str, Any]) -> str:
    """A word of a command with {name} replaced."""
    return re.sub(r"\{([\w.]+)\}", lambda found: str(names[found[1]]), word)


def write(path: Path, keys: Mapping[str, Any]) -> None:
    """A configuration file by its ending; a dot in a key goes one level down, except in properties."""
    if path.suffix == ".properties":
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return
    tree: dict[str, Any] = {}
    for key, value in keys.items():
        *above, last = key.split(".")
        place = tree
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    if path.suffix == ".json":
        path.write_text(json.dumps(tree))
    elif path.suffix == ".ini":
        parser = configparser.ConfigParser()
        parser.read_dict(tree)
        with path.open("w") as file:
            parser.write(file)
    else:
        path.write_text("".join(sorted(_toml(tree), key=lambda text: text.startswith("["))))


def _toml(tree: Mapping[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield f"[{key}]\n" + "".join(_toml(value))
        else:
            yield f"{key} = {json.dumps(value)}\n"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own, under a user who is not root; how to reach it (libpq)."""
    port, data = free_port(), folder / "postgres"
    data.mkdir()
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        folder.chmod(0o755)
        shutil.chown(data, "nobody")
        account = {"user": "nobody", "group": "nogroup", "extra_groups": ()}
    program = POSTGRESQL[-1]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **account}
    make: list[str | Path] = [program / "initdb", "--pgdata", data, "--username=postgres", "--auth=trust", "--no-sync"]
    subprocess.run(make, check=True, **quiet)
    options = ["-c", f"port={port}", "-c", "unix_socket_directories=", "-c", "fsync=off"]
    process = subprocess.Popen([program / "postgres", "-D", data, *options], **quiet)
    try:
        end_s = time.monotonic() + READY_WITHIN_S
        ask: list[str | Path] = [program / "pg_isready", "--quiet", "--host=127.0.0.1", f"--port={port}"]
        while subprocess.run(ask, check=False).returncode and time.monotonic() < end_s:
            time.sleep(0.05)
        yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    finally:
        process.terminate()
        process.wait()
