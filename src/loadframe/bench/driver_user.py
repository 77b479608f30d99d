"""Under which user the load driver runs: one that nothing else on the machine has, wherever that is possible.

A driver needs no rights, and what it talks to may try to take it over. It stays the user who runs Loadframe where that
is not root, where that user logs in to a server that Loadframe did not start (by who it is, or with keys of its own),
and where the other user may not read the driver's programs, such as a Python below /root.
"""

import os
import pwd
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.errors import CageError, MissingTool
from loadframe.host.environment import NO_FOLDER
from loadframe.host.leases import Lease
from loadframe.host.own_user import why_no_free_user
from loadframe.host.privilege import US, LeaseUser, Privilege
from loadframe.host.processes import Allowance, spawn
from loadframe.study import Study
from loadframe.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class DriverUser:
    """why_not: in words, why it stays who we are; empty where it does not."""

    privilege: Privilege
    why_not: str = ""

    @property
    def stays_root(self) -> bool:
        return self.privilege == US and os.geteuid() == 0

    def __str__(self) -> str:
        if self.privilege != US:
            return f"user {self.privilege}: it has no rights, and nothing else runs as that user"
        return f"{_our_name()}: {self.why_not}"


def driver_user(study: Study, workload: Workload, lease: Lease) -> DriverUser:
    """Who runs the driver in this lease."""
    if lease.user is None:
        return DriverUser(US, why_no_free_user())
    if study.target.attach is not None:
        return DriverUser(US, "the server may know it by who it is, or by keys that only this user may read")
    user = LeaseUser(lease.user)
    refused = cannot_run(workload.trials(), user)
    return DriverUser(user) if refused is None else DriverUser(US, refused)


def cannot_run(trials: Sequence[Sequence[str]], user: Privilege) -> str | None:
    """What keeps a user from running these, in words; None where each ends well."""
    for command in trials:
        with tempfile.TemporaryFile() as said:
            try:
                failed = spawn(command, Allowance(user), stdout=said, stderr=said, cwd=NO_FOLDER).wait() != 0
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
