"""Runs loadframe commands, each in a process forked from this one: one JSON object a line on stdin, the exit status of
each on stdout."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import altair  # noqa: F401 - so that no command has to

from loadframe import lab  # noqa: F401
from loadframe.cli import entry, main  # noqa: F401


def become(asked: dict[str, object]) -> None:
    """The command, in its folder and with its environment; what it says goes to the files out and err."""
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    said = Path(str(asked["said"]))
    for descriptor, path in enumerate((os.devnull, said / "out", said / "err")):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY
        os.dup2(os.open(path, flags), descriptor)
    sys.argv = ["loadframe", *asked["arguments"]]  # type: ignore[misc]


for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        become(json.loads(line))
        try:
            entry.main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(int(end.code or 0))  # to take apart what was imported would take longer than most commands
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
