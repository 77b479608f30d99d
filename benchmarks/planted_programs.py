"""The programs of the planted services: what a study needs of this machine, compiling them, and starting one as its
study says without Loadframe's help.

A study of benchmarks/planted/ with kind = "service" may name these places: {services} (the folder of the programs),
{build} (what is compiled of them), {python} and {packages} (an interpreter and its packages), and NAME_port, of one of
BESIDE.
"""

from __future__ import annotations

import configparser
import functools
import importlib.util
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).with_name("planted")
SERVICES = STUDIES / "services"
BUILT = SERVICES / "build"
SYSTEM_PYTHON = "/usr/bin/python{}.{}".format(*sys.version_info[:2])
"""Our packages are for this version."""
COMPILERS = {".java": "javac", ".go": "go"}
POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
READY_WITHIN_S, STOP_WITHIN_S = 30.0, 10.0
Tables = dict[str, Any]
Settings = Mapping[str, Any]


def expanded(text: str) -> str:
    """A study's text with the places on this machine, and the ports of what runs beside the service."""
    python, packages = interpreter()
    places = {"services": SERVICES, "build": BUILT, "python": python, "packages": packages}
    ports = {f"{name}_port": port_of(name) for name in BESIDE if f"{{{name}_port}}" in text}
    for name, place in (places | ports).items():
        text = text.replace(f"{{{name}}}", str(place))
    return text


@functools.cache
def interpreter() -> tuple[str, str]:
    """A Python that any user may run, as Loadframe runs services as an unprivileged one, and the folder of the packages
    that it needs; the system's, where ours lies in a folder of ours."""
    way = Path(sys.executable).resolve()
    others_may = all(part.stat().st_mode & 0o001 for part in (way, *way.parents))
    packages = sysconfig.get_paths()["purelib"]
    return (sys.executable, packages) if others_may else (SYSTEM_PYTHON, packages)


@functools.cache
def port_of(name: str) -> int:
    """Where one of BESIDE listens, throughout this process."""
    return free_port()


def studies() -> dict[str, Tables]:
    """The studies of services by their names, as TOML has them."""
    read = {path.stem: tomllib.loads(expanded(path.read_text())) for path in sorted(STUDIES.glob("*.toml"))}
    return {name: tables for name, tables in read.items() if tables["target"]["kind"] == "service"}


def lacking(tables: Tables) -> list[str]:
    """The programs that a study's services need and this machine lacks."""
    words = tables["target"]["command"]
    wanted = ["javac" if words[0] == "java" else "go" if words[0].startswith(str(BUILT)) else words[0]]
    if "database" in tables["planted"].get("beside", ()):
        wanted.append(str(POSTGRESQL[-1] / "initdb") if POSTGRESQL else "initdb")
    missing = [name for name in wanted if shutil.which(name) is None]
    if "gunicorn" in words and importlib.util.find_spec("gunicorn") is None:
        missing.append("gunicorn (pip install gunicorn)")
    return missing


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
def beside(names: Iterable[str]) -> Iterator[None]:
    """What a study's service needs beside it, by the names of BESIDE."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(BESIDE[name](port_of(name)))
        yield


@contextmanager
def started(tables: Tables, settings: Settings, files: int | None = None) -> Iterator[Running]:
    """A service as a study says; what it needs beside it runs. files: its limit of open files. RuntimeError where it
    does not answer."""
    target = tables["target"]
    specs: Mapping[str, Tables] = target.get("setting", {})
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, tempfile.TemporaryFile() as log:
        names: dict[str, Any] = {"data": folder, "port": free_port()}
        for source in {spec["file"] for spec in specs.values() if spec["apply"] == "file"}:
            keys = {spec["key"]: settings[name] for name, spec in specs.items() if spec.get("file") == source}
            names["file"] = Path(folder, Path(source).name)
            write(names["file"], keys)
        variables = {
            spec["name"]: str(settings[name]) for name, spec in specs.items() if spec["apply"] == "environment"
        }
        command = [filled(word, {**names, **settings}) for word in target["command"]]
        process = subprocess.Popen(
            command,
            env={**os.environ, **target.get("environment", {}), **variables},
            stdout=log,
            stderr=log,
            preexec_fn=lambda: _limit(files),
            cwd=folder,
        )
        running = Running(names["port"], process)
        try:
            _await(running, log)
            for name, spec in specs.items():
                if spec["apply"] == "command":
                    change = [filled(word, {**names, "value": settings[name]}) for word in spec["command"]]
                    subprocess.run(change, check=True, stdout=log)
            yield running
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and kill it where it does not."""
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
    elif path.suffix == ".yaml":
        path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in tree.items()))
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
def database(port: int) -> Iterator[None]:
    """A PostgreSQL that trusts whoever comes, under a user who is not root."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        data, program = Path(folder, "postgres"), POSTGRESQL[-1]
        data.mkdir()
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            Path(folder).chmod(0o755)
            shutil.chown(data, "nobody")
            account = {"user": "nobody", "group": "nogroup", "extra_groups": ()}
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **account}
        make = [str(program / "initdb"), f"--pgdata={data}", "--username=postgres", "--auth=trust", "--no-sync"]
        subprocess.run(make, check=True, **quiet)
        options = ["-c", f"port={port}", "-c", "unix_socket_directories=", "-c", "fsync=off"]
        process = subprocess.Popen([str(program / "postgres"), "-D", str(data), *options], **quiet)
        ask = [str(program / "pg_isready"), "--quiet", "--host=127.0.0.1", f"--port={port}"]
        try:
            end_s = time.monotonic() + READY_WITHIN_S
            while subprocess.run(ask, check=False).returncode and time.monotonic() < end_s:
                time.sleep(0.05)
            yield
        finally:
            end(process)


@contextmanager
def inventory(port: int) -> Iterator[None]:
    """What the gateway asks, three at a time."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, str(SERVICES / "inventory.py"), str(port), "3"], stdout=log, stderr=log
        )
        try:
            _await(Running(port, process), log)
            yield
        finally:
            end(process)


BESIDE: Mapping[str, Callable[[int], AbstractContextManager[None]]] = {"database": database, "inventory": inventory}
"""What may run beside a service, by its name: each is given a port."""
