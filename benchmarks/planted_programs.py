"""The programs of the planted services: what a study needs of this machine, compiling them, and starting one as its
study says without Loadframe's help.

A study of benchmarks/planted/ with kind = "service" may name these places: {services} (the folder of the programs),
{build} (what is compiled of them), {python} and {packages} (an interpreter and its packages).
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from loadframe.kinds.registry import kind_named
from loadframe.study import Study

STUDIES = Path(__file__).with_name("planted")
SERVICES = STUDIES / "services"
BUILT = SERVICES / "build"
SYSTEM_PYTHON = "/usr/bin/python{}.{}".format(*sys.version_info[:2])
"""Our packages are for this version."""
COMPILERS = {".java": "javac", ".go": "go"}
POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
READY_WITHIN_S, STOP_WITHIN_S = 30.0, 10.0
CLUSTERS = ("ndb", "ndb-sql")
Tables = dict[str, Any]
Settings = Mapping[str, Any]


def expanded(text: str) -> str:
    """A study's text with the places on this machine."""
    python, packages = interpreter()
    places = {"services": SERVICES, "build": BUILT, "python": python, "packages": packages}
    for name, place in places.items():
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


def studies() -> dict[str, Tables]:
    """The studies of services by their names, as TOML has them."""
    read = {path.stem: tomllib.loads(expanded(path.read_text())) for path in sorted(STUDIES.glob("*.toml"))}
    return {name: tables for name, tables in read.items() if tables["target"]["kind"] == "service"}


def lacking(tables: Tables) -> list[str]:
    """The programs that a study's services need and this machine lacks."""
    words = tables["target"]["command"]
    wanted = ["javac" if words[0] == "java" else "go" if words[0].startswith(str(BUILT)) else words[0]]
    if any(helper["name"] == "database" for helper in tables["target"].get("with", ())):
        wanted.append(str(POSTGRESQL[-1] / "initdb") if POSTGRESQL else "initdb")
    missing = [name for name in wanted if shutil.which(name) is None]
    if "gunicorn" in words and importlib.util.find_spec("gunicorn") is None:
        missing.append("gunicorn (pip install gunicorn)")
    return missing


def lacking_here(study: Study) -> list[str]:
    """The programs that a study of a cluster needs and this machine lacks: no package of Debian 12 has them."""
    if study.target.kind not in CLUSTERS:
        return []
    missing = [need.what for need in kind_named(study.target.kind).requirements() if need.present is None]
    driver = study.workload.command[0] if study.workload.command else None
    return [*missing, *([driver] if driver is not None and shutil.which(driver) is None else [])]


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


def own(tables: Tables, settings: Settings) -> dict[str, Any]:
    """These settings of a study but for those of its helpers, which the service does not tell."""
    specs: Mapping[str, Tables] = tables["target"].get("setting", {})
    asked = {name: spec.get("read_back", {}).get("json", "") for name, spec in specs.items()}
    return {name: value for name, value in settings.items() if "_port}" not in asked.get(name, "")}


@contextmanager
def started(tables: Tables, settings: Settings, files: int | None = None) -> Iterator[Running]:
    """A service and its helpers as a study says. files: its limit of open files. RuntimeError where it does not
    answer."""
    target = tables["target"]
    specs: Mapping[str, Tables] = target.get("setting", {})
    with ExitStack() as stack:
        names: dict[str, Any] = {}
        for helper in target.get("with", ()):
            place = {"port": free_port(), "data": stack.enter_context(_folder())}
            stack.enter_context(_process(helper, {**place, **settings}, os.environ, None))
            names[f"{helper['name']}_port"] = place["port"]
        names |= {"port": free_port(), "data": stack.enter_context(_folder())}
        for source in {spec["file"] for spec in specs.values() if spec["apply"] == "file"}:
            keys = {spec["key"]: settings[name] for name, spec in specs.items() if spec.get("file") == source}
            names["file"] = Path(names["data"], Path(source).name)
            write(names["file"], keys)
        variables = {
            spec["name"]: str(settings[name]) for name, spec in specs.items() if spec["apply"] == "environment"
        }
        process = stack.enter_context(_process(target, {**names, **settings}, os.environ | variables, files))
        for name, spec in specs.items():
            if spec["apply"] == "command":
                change = [filled(word, {**names, "value": settings[name]}) for word in spec["command"]]
                subprocess.run(change, check=True, stdout=subprocess.DEVNULL)
        yield Running(names["port"], process)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir="/var/tmp")


@contextmanager
def _process(
    table: Tables, names: Mapping[str, Any], environment: Mapping[str, str], files: int | None
) -> Iterator[subprocess.Popen[bytes]]:
    """What a study says of a service or of a helper, once it is ready."""
    command = [filled(word, names) for word in table["command"]]
    own = {name: filled(value, names) for name, value in table.get("environment", {}).items()}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            env={**environment, **own},
            stdout=log,
            stderr=log,
            preexec_fn=lambda: _limit(files),
            cwd=names["data"],
        )
        try:
            _await(process, log, lambda: _is_ready(table["ready"], names, log))
            yield process
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


def _await(process: subprocess.Popen[bytes], log: IO[bytes], ready: Callable[[], bool]) -> None:
    end_s = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < end_s:
        if ready():
            return
        time.sleep(0.02)
    said = os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")
    raise RuntimeError(f"{process.args!r} is not ready: {said[-2000:]}")


def _is_ready(ready: Tables, names: Mapping[str, Any], log: IO[bytes]) -> bool:
    if "log" in ready:
        return ready["log"].encode() in os.pread(log.fileno(), 1 << 20, 0)
    try:
        urllib.request.urlopen(filled(ready["http"], names), timeout=5).close()
    except (OSError, urllib.error.URLError):
        return False
    return True


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
