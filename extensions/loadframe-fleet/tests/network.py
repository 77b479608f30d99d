"""A network of the test's own: namespaces that stand in for hosts, joined by a bridge in one more namespace.

Each is held by a process that sleeps in it and is entered by that process's number: nothing is mounted, so that it also
works in a chroot, and nothing is left where a test is killed but a process that ends by itself.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waiting import await_that

HELD_S = 300
MIDDLE = ""
"""The namespace of the bridge."""


def possible() -> bool:
    """Whether this user may make network namespaces here, and links in them."""
    link = ["ip", "link", "add", "name", "bridge", "type", "bridge"]
    return (
        shutil.which("ip") is not None
        and not subprocess.run(["unshare", "--net", *link], capture_output=True, check=False).returncode
    )


@dataclass
class Network:
    """Hosts by name, each with an address 10.77.0.N."""

    names: Sequence[str]
    _holders: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Network:
        try:
            self._hold(MIDDLE)
            self._in_middle("link", "add", "bridge", "type", "bridge")
            self._in_middle("link", "set", "bridge", "up")
            for number, name in enumerate(self.names, start=1):
                self._join(name, number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait()

    def address(self, name: str) -> str:
        return f"10.77.0.{1 + list(self.names).index(name)}"

    def within(self, name: str) -> list[str]:
        """What comes before a command that is to run on that host."""
        return ["nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net", "--"]

    def slow_down(self, name: str, rate: str) -> None:
        """What that host sends leaves at this rate (tc(8)), by a token bucket."""
        shaped = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "50ms"]
        subprocess.run([*self.within(name), *shaped], check=True)

    def cut(self, name: str) -> None:
        """Its link carries nothing more, and neither end is told."""
        self._in_middle("link", "set", f"to-{name}"[:15], "down")

    def _hold(self, name: str) -> None:
        holder = subprocess.Popen(["unshare", "--net", "sleep", str(HELD_S)])
        self._holders[name] = holder
        mine, theirs = (Path(f"/proc/{each}/ns/net") for each in ("self", holder.pid))
        await_that(lambda: theirs.readlink() != mine.readlink(), "a network of its own", of=holder)

    def _join(self, name: str, number: int) -> None:
        self._hold(name)
        outside, inside = f"to-{name}"[:15], str(self._holders[name].pid)
        self._in_middle("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", inside)
        self._in_middle("link", "set", outside, "master", "bridge", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"10.77.0.{number}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            self._ip(name, *words)

    def _in_middle(self, *words: str) -> None:
        self._ip(MIDDLE, *words)

    def _ip(self, name: str, *words: str) -> None:
        subprocess.run([*self.within(name), "ip", *words], check=True, capture_output=True)
