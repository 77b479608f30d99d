"""As whom a process runs: whoever starts it says so, one of three ways, and there is no default. Where it is not known,
or a user cannot run what it should, the process is not started: no branch ends as root for want of an answer."""

import os
import pwd
from dataclasses import dataclass
from typing import assert_never

from loadframe.errors import CageError


@dataclass(frozen=True, slots=True)
class Us:
    """The user who runs Loadframe, root included."""

    def __str__(self) -> str:
        return "the user who ran Loadframe"


@dataclass(frozen=True, slots=True)
class LeaseUser:
    """The user of a lease, whom nothing else on the machine has: a number that is in no list of users, and that of a
    group too."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user of this machine: an account, with the groups that it is in, or the number of one without an account."""

    name: str | int

    def __str__(self) -> str:
        return str(self.name)


Privilege = Us | LeaseUser | NamedUser
US = Us()


@dataclass(frozen=True, slots=True)
class Ids:
    """Of a user. groups: all that it is in, without those that a lease adds."""

    uid: int
    gid: int
    groups: frozenset[int]


def ids_of(privilege: Privilege) -> Ids:
    """CageError where there is no such user."""
    match privilege:
        case Us():
            return Ids(os.geteuid(), os.getegid(), frozenset({os.getegid(), *os.getgroups()}))
        case LeaseUser(number) | NamedUser(int(number)):
            return Ids(number, number, frozenset({number}))
        case NamedUser(name):
            try:
                account = pwd.getpwnam(str(name))
            except KeyError as error:
                raise CageError(
                    f"There is no user {name!r} on this machine", remedy="Create it, or name another."
                ) from error
            return Ids(account.pw_uid, account.pw_gid, frozenset(os.getgrouplist(str(name), account.pw_gid)))
    assert_never(privilege)


def of_uid(uid: int) -> Privilege:
    """Who has this number: ourselves; an account, with its groups; else a user without an account."""
    if uid == os.geteuid():
        return US
    try:
        return NamedUser(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return NamedUser(uid)


def account(*preferred: str) -> Privilege:
    """Who runs a server of a package: the first of these accounts that this machine has, else "nobody"; ourselves where
    we are not root."""
    if os.geteuid() != 0:
        return US
    known = {entry.pw_name for entry in pwd.getpwall()}
    return NamedUser(next((name for name in preferred if name in known), "nobody"))
