"""The package of a server: its programs, how to install them, and their versions."""

import functools
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from loadframe.errors import MissingTool
from loadframe.host.environment import SYSTEM, located
from loadframe.model import Requirement


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a server's program that reports something; its output may hold any bytes."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, encoding="utf-8", errors="replace"
    )


@dataclass(frozen=True)
class Package:
    """Where a server is from. programs: those needed, the server first. install: how to get them. asked: arguments
    that print the version. told: a pattern whose group finds it. find: a program's path."""

    name: str
    programs: tuple[str, ...]
    install: str
    asked: tuple[str, ...]
    told: str
    find: Callable[[str], str | None] | None = None

    def program(self, name: str) -> str | None:
        """None where it is not installed."""
        return (self.find or installed)(name)

    def required(self, name: str = "") -> str:
        """The path of a program, "" for the server itself. MissingTool."""
        name = name or self.programs[0]
        path = self.program(name)
        if path is None:
            raise MissingTool(f"{name} is not installed", remedy=self.install)
        return path

    def version(self) -> str:
        """For example "MariaDB 10.11.6". MissingTool."""
        said = _said((self.required(), *self.asked))
        match = re.search(self.told, said)
        return f"{self.name} {match[1]}" if match else f"{self.name} of unknown version"

    def requirements(self, kind: str) -> list[Requirement]:
        return [Requirement(kind, name, self.program(name), self.install) for name in self.programs]


@functools.cache
def _said(command: tuple[str, ...]) -> str:
    done = ask(*command)
    return done.stdout + done.stderr


def installed(program: str) -> str | None:
    """The path of a program, also in /usr/sbin, which is often not in an ordinary user's PATH."""
    return located(program, SYSTEM)
