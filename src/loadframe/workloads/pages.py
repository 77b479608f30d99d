"""Pages of a server that Loadframe did not start: what it answers is learnt before it is loaded, and compared from
then."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from loadframe.connections.bounds import shown
from loadframe.errors import TargetError
from loadframe.host.own_user import User
from loadframe.workloads import step_files
from loadframe.workloads.objects import RECORD

CHECKS = ("bytes", "length", "status")
"""What of an answer is looked at: all of it, its status and how long it is, its status alone."""

Ask = Callable[[str], tuple[int, bytes]]
"""Status and body of one GET of a path."""
MOST_BYTES = 512 << 20
"""Of all pages together: they are kept in memory, and wrk maps them."""


@dataclass(frozen=True)
class Pages:
    """paths, and the body of each."""

    paths: tuple[str, ...]
    bodies: tuple[bytes, ...]

    @classmethod
    def learn(cls, address: str, paths: Sequence[str], ask: Ask, checked: str) -> Self:
        """Ask for each twice. TargetError for one that is not there, or that is another one the second time, as far as
        that is checked (of CHECKS), and where they are longer than MOST_BYTES together."""
        bodies: list[bytes] = []
        for path in paths:
            (status, body), (_, again) = ask(path), ask(path)
            if status != http.client.OK:
                raise TargetError(
                    f"The server at {address} answers {path} with status {status}",
                    remedy="Name paths that it answers with 200 (target.settings.paths).",
                )
            if not alike(body, again, checked):
                what, enough = ("bytes", "length") if len(body) == len(again) else ("lengths", "status")
                raise TargetError(
                    f"The server at {address} answers {path} with different {what} each time, so it cannot be checked",
                    remedy=f'Set workload.options.checked = "{enough}" to have no more than that of its answers '
                    "checked, or leave this path out (target.settings.paths).",
                )
            bodies.append(body)
            if sum(map(len, bodies)) > MOST_BYTES:
                raise TargetError(
                    f"The pages of {address} up to {path} are longer than {shown(MOST_BYTES)} together",
                    remedy="Name fewer or shorter ones (target.settings.paths).",
                )
        return cls(tuple(paths), tuple(bodies))

    def write(self, table: Path, text: Path, paths: Path, exponent: float, owner: User | None) -> None:
        """As the driver reads them: the table in objects.RECORD's form, all contents, a path in each line. exponent: of
        Zipf's law, as the paths are ordered. owner: who runs the driver."""
        import numpy as np

        sizes = np.array([len(body) for body in self.bodies], dtype=np.uint64)
        found = np.empty(len(sizes), dtype=RECORD)
        found["up_to"] = np.cumsum(np.arange(1, len(sizes) + 1, dtype=np.float64) ** -exponent)
        found["offset"] = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        found["size"] = sizes
        step_files.write(table, found.tobytes(), owner)
        step_files.write(text, b"".join(self.bodies) + b"\0", owner)  # of nothing there is no mapping
        step_files.write(paths, "".join(f"{path}\n" for path in self.paths).encode(), owner)


def alike(one: bytes, other: bytes, checked: str) -> bool:
    """Whether two bodies are the same, as far as that is checked (of CHECKS)."""
    of_both = {"bytes": one == other, "length": len(one) == len(other), "status": True}
    return of_both[checked]
