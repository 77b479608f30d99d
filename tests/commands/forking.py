"""Runs loadframe commands, each in a process forked from this one: one JSON object a line on stdin, the number and
the exit status of each on stdout."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import vl_convert  # noqa: F401 - so that no command has to

from loadframe import lab  # noqa: F401
from loadframe.cli import entry, main

for module, _ in main.VERBS.values():  # a user who may not enter the interpreter's folder cannot import them
    import_module(f"loadframe.cli.{module.partition(':')[0]}")


def become(asked: dict[str, Any]) -> None:
    """The command, in its folder and with its environment; what it says goes to the files out and err, or to whatever
    stands there instead, None for a closed stream."""
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    said = asked["said"]
    streams = {"in": os.devnull, "out": f"{said}/out", "err": f"{said}/err", **asked.get("streams", {})}
    for descriptor, path in enumerate((streams["in"], streams["out"], streams["err"])):
        opened = os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY)
        os.dup2(opened, descriptor)
        os.close(opened)
    for descriptor in [number for number, name in enumerate(("in", "out", "err")) if streams[name] is None]:
        os.close(descriptor)
    encoding = asked.get("encoding", "utf-8")
    sys.stdin = None if streams["in"] is None else os.fdopen(0, encoding=encoding)  # type: ignore[assignment]
    sys.stdout = None if streams["out"] is None else os.fdopen(1, "w", encoding=encoding)  # type: ignore[assignment]
    sys.stderr = None if streams["err"] is None else os.fdopen(2, "w", encoding=encoding)  # type: ignore[assignment]
    sys.argv = ["loadframe", *asked["arguments"]]
    restrict(asked)


def restrict(asked: dict[str, Any]) -> None:
    """Its limits, its umask, its user; its folder goes last."""
    if (mask := asked.get("umask")) is not None:
        os.umask(mask)
    for name, most in asked.get("limits", {}).items():
        resource.setrlimit(getattr(resource, name), (most, most))
    if (mode := asked.get("closed")) is not None:
        Path(asked["folder"]).chmod(mode)
    if (user := asked.get("user")) is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    if asked.get("gone"):
        Path(asked["folder"]).rmdir()


for line in sys.stdin:
    asked_now = json.loads(line)
    pid = os.fork()
    if pid == 0:
        become(asked_now)
        entry.main()
    print(asked_now["number"], os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
