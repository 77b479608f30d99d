"""The user of the load driver: one that nothing else on the machine uses, unless the study names another. What a driver
talks to may try to take it over, so root is refused, except (reported) where a server that Loadframe did not start
knows an account by the user who logs in, or by a key that only that user may read."""

import os
import pwd
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import CageError, MissingTool
from loadframe.host.environment import NO_FOLDER
from loadframe.host.leases import Lease
from loadframe.host.privilege import US, LeaseUser, NamedUser, Privilege, why_no_free_user
from loadframe.host.processes import Allowance, spawn, unreachable
from loadframe.model import Endpoint
from loadframe.study import Study
from loadframe.workloads.base import Workload

BY_HAND = 'say who runs it: workload.user = "NAME" of an account of this machine, or "root"'


@dataclass(frozen=True, slots=True)
class DriverUser:
    privilege: Privilege
    why: str

    @property
    def stays_root(self) -> bool:
        return self.privilege == US and os.geteuid() == 0

    def __str__(self) -> str:
        return f"{_our_name() if self.privilege == US else f'user {self.privilege}'}: {self.why}"


def driver_user(study: Study, workload: Workload, lease: Lease) -> DriverUser:
    """CageError where it would be root and the study does not say so, where the user cannot run it or reach its files,
    and where only root could switch to the named user."""
    name = study.workload.user
    said = f"workload.user = {name!r}"
    if os.geteuid() != 0:
        if name not in ("", _our_name()):
            raise CageError(
                f"{said}: only root starts a load driver as another user", remedy="Omit it, or become root."
            )
        return DriverUser(US, "only root starts processes under another user")
    if name == "root":
        return DriverUser(US, said)
    if name:
        user = DriverUser(NamedUser(name), said)
    elif lease.user is not None:
        user = DriverUser(LeaseUser(lease.user), "it has no rights, and nothing else runs as that user")
    else:
        raise CageError(f"The load driver would run as root: {why_no_free_user()}", remedy=f"Else {BY_HAND}.")
    if (barrier := unreachable(lease.folder, user.privilege, lease.user)) is not None:
        raise CageError(
            f"User {user.privilege}, who is to run the load driver, may not enter {barrier}, where its files are",
            remedy=f"chmod o+x {barrier}, set LOADFRAME_SCRATCH to a folder that others may enter, or {BY_HAND}.",
        )
    if (refused := cannot_run(workload.trials(), user.privilege)) is not None:
        raise CageError(
            f"User {user.privilege}, who is to run the load driver, cannot: {refused}",
            remedy=f"Put it where other users may read it, or {BY_HAND}.",
        )
    return user


def logging_in(user: DriverUser, study: Study, endpoint: Endpoint) -> DriverUser:
    """The driver's user for a server that Loadframe did not start: our own, where another could not log in and the
    study names none. CageError where a program of the study's would be root for that."""
    if study.workload.user or not isinstance(user.privilege, LeaseUser):
        return user
    place = Path(endpoint.options.get("socket") or endpoint.address)
    if place.is_absolute() and (barrier := unreachable(place.parent, user.privilege)) is not None:
        why = f"another user may not enter {barrier}, where the server's socket is"
    elif endpoint.options.get("sslkey"):
        why = f"the server knows it by a key that only this user may read, {endpoint.options['sslkey']}"
    elif not endpoint.options.get("password"):
        why = f"{endpoint.options.get('user', '')} has no password here, so the server may know it by who logs in"
    else:
        return user
    if study.workload.command:
        raise CageError(f"workload.command would run as root: {why}", remedy=f"Give it a password, or {BY_HAND}.")
    return DriverUser(US, why)


def cannot_run(trials: Sequence[Sequence[str]], user: Privilege) -> str | None:
    for command in trials:
        if command[0] == "test" and not Path(command[-1]).exists():
            continue
        with tempfile.TemporaryFile() as said:
            try:
                failed = spawn(command, Allowance(user), stdout=said, stderr=said, cwd=NO_FOLDER).wait() != 0
            except (CageError, MissingTool) as error:
                return error.fact
            said.seek(0)
            last = said.read().decode(errors="replace").strip().rpartition("\n")[2]
        if failed:
            return last[:200] or f"`{' '.join(command)}` fails"
    return None


def _our_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
