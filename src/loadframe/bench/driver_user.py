"""Under which user the load driver runs: one that nothing else on the machine has, wherever that is possible.

A driver needs no rights, and what it talks to may try to take it over. It stays the user who runs Loadframe where that
is not root, where that user logs in to a server that Loadframe did not start (by who it is, or with keys of its own),
and where the other user may not read the driver's programs, such as a Python below /root.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.errors import CageError, MissingTool
from loadframe.host.environment import NO_FOLDER
from loadframe.host.leases import Lease
from loadframe.host.own_user import why_no_free_user
from loadframe.host.processes import Allowance, spawn
from loadframe.study import Study
from loadframe.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class DriverUser:
    """number: None where it stays who we are. why_not: in words, why it does; empty where it does not."""

    number: int | None
    why_not: str = ""

    @property
    def stays_root(self) -> bool:
        return self.number is None and os.geteuid() == 0

    def __str__(self) -> str:
        if self.number is not None:
            return f"user {self.number}: it has no rights, and nothing else runs as that user"
        return f"{_our_name()}: {self.why_not}"


def driver_user(study: Study, workload: Workload, lease: Lease) -> DriverUser:
    """Who runs the driver in this lease."""
    if lease.user is None:
        return DriverUser(None, why_no_free_user())
    if study.target.attach is not None:
        return DriverUser(None, "the server may know it by who it is, or by keys that only this user may read")
    refused = cannot_run(workload.trials(), lease.user)
    return DriverUser(lease.user) if refused is None else DriverUser(None, refused)


def cannot_run(trials: Sequence[Sequence[str]], user: int) -> str | None:
    """What keeps a user from running these, in words; None where each ends well."""
    for command in trials:
        with tempfile.TemporaryFile() as said:
            try:
                failed = spawn(command, Allowance(user=user), stdout=said, stderr=said, cwd=NO_FOLDER).wait() != 0
            except (CageError, MissingTool) as error:
                return f"another user cannot run it ({error.fact})"
            said.seek(0)
            last = said.read().decode(errors="replace").strip().rpartition("\n")[2]
        if failed:
            return f"another user cannot run it ({last[:200] or ' '.join(command)})"
    return None


def _our_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
