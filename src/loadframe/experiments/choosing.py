"""The process that `loadframe init` writes a study of, where several belong to a service or hold a port."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from loadframe.errors import TargetError
from loadframe.host import identity, listening
from loadframe.kinds.behind import comm_of
from loadframe.kinds.service.discovery import Candidate, candidates, discover, members_of_unit, name_of, of_process

MOST_NAMED = 12
OF_A_USER = "user@"
"""Prefix of a unit with all processes of a user (user@.service(5))."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """first: the service's parents, several where processes of a command line share its port. where: keys of its
    target."""

    first: tuple[int, ...]
    where: Mapping[str, int | str]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Service:
    port: int
    pid: int
    words: str


def services(port: int | None = None, pid: int | None = None) -> tuple[Service, ...]:
    known, alive = candidates(port), []
    if pid is not None:
        pid, of_it = of_process(pid, known)
        known = of_it if port is None else ()
    for candidate in known:
        with suppress(TargetError):  # it has ended
            alive.append(Service(candidate.port, candidate.pid if pid is None else pid, _words(candidate)))
    return tuple(alive)


def choose(port: int | None, pid: int | None) -> Chosen:
    if pid is None:
        assert port is not None, "one of them names it"
        candidate = _only(candidates(port), port)
        return Chosen(candidate.first, {"listen": candidate.listen}, tuple(_group(candidate)))
    discover(pid)  # raises TargetError unless it runs
    known = candidates()
    first, own = of_process(pid, known)
    parent = f"process {first} ({name_of(first)})"
    said = (
        ()
        if first == pid
        else (f"Process {pid} belongs to the service that {parent} has started, which the study is of.",)
    )
    if port is not None:
        at = [candidate for candidate in own if candidate.port == port]
        others = [candidate for candidate in known if candidate.port == port and candidate not in own]
        where = {"pid": first, "listen": at[0].listen if at else port}
        return Chosen((first,), where, (*said, *_also(port, at, others)))
    if not own:
        raise TargetError(
            f"process {pid} ({name_of(pid)}) listens on no port that is seen from here",
            remedy="Name the process that listens, or the port at which it is reached with --port.",
        )
    if len(own) > 1:
        raise TargetError(
            f"process {first} ({name_of(first)}) and what it has started listen on {len(own)} ports: {_list(own)}",
            remedy=f"Say on which it is to be asked: --pid {pid} --port {own[0].port}, for example.",
        )
    listen = {} if isinstance(own[0].listen, int) else {"listen": own[0].listen}
    return Chosen((first,), {"pid": first, **listen}, (*said, *_group(own[0])))


def _only(candidates: Sequence[Candidate], port: int) -> Candidate:
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise TargetError(
            f"{len(candidates)} services that do not belong together listen on port {port}: {_list(candidates)}",
            remedy=f"Say which one is yours: --port {port} --pid {candidates[0].pid}, for example.",
        )
    if not listening.at(port):
        raise TargetError(
            f"no process of this machine listens at port {port}", remedy="Start the service, or name its command."
        )
    raise TargetError(
        f"which process listens at port {port} cannot be seen: it belongs to another user or container",
        remedy='Run `loadframe init` as root, or load it by its address: target.kind = "url".',
    )


def _words(candidate: Candidate) -> str:
    listens = f"port {candidate.port}" + ("" if isinstance(candidate.listen, int) else f" of {candidate.number}")
    more = len([pid for pid in candidate.holders if pid != candidate.pid])
    also = {0: "", 1: ", and 1 further process of it"}.get(more, f", and {more:,} further processes of it")
    return f"{listens}: {discover(candidate.pid).words}{also}"


def _list(candidates: Sequence[Candidate]) -> str:
    text = "; ".join(map(_words, candidates[:MOST_NAMED]))
    return text + (f"; and {len(candidates) - MOST_NAMED} more" if len(candidates) > MOST_NAMED else "")


def _pids(pids: Sequence[int]) -> str:
    named = [str(pid) for pid in pids[:MOST_NAMED]]
    if len(pids) > MOST_NAMED:
        return f"{', '.join(named)} and {len(pids) - MOST_NAMED} more"
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _group(candidate: Candidate) -> Iterator[str]:
    others = [pid for pid in candidate.holders if pid not in candidate.first]
    if len(candidate.first) > 1:
        yield (
            f"{len(candidate.first)} processes of the same command line, pids {_pids(candidate.first)}, share port "
            f"{candidate.port}, and none of them started the others; the study takes all of them."
        )
    elif others:
        started = f"pid {others[0]}" if len(others) == 1 else f"pids {_pids(others)}"
        yield (
            f"Port {candidate.port} is held by pid {candidate.pid} and what that has started ({started}); the study "
            f"takes pid {candidate.pid}, the parent, and all that come from it."
        )


def _also(port: int, own: Sequence[Candidate], others: Sequence[Candidate]) -> Iterator[str]:
    if own:
        yield from _group(own[0])
    if own and others:
        yield f"Others hold port {port}, too, and may get part of its requests: {_list(others)}."
    elif others:
        yield (
            f"Port {port} is not its own: requests go to {_list(others)}. The study is right if that passes them on to "
            "it."
        )
    elif not own:
        yield f"Which process listens on port {port} is not seen from here; that it is this service is your word."


def company(first: Sequence[int], unit: str) -> Iterator[str]:
    """Sentences on its other programs, and processes of its unit that it did not start. first: its parents."""
    family = list(dict.fromkeys(member.pid for pid in first for member in identity.family(pid)))
    names = {comm_of(pid) for pid in first}
    helpers = [pid for pid in family if comm_of(pid) not in (*names, "")]
    if helpers:
        yield f"Of its processes {len(helpers)} ha{'s' if len(helpers) == 1 else 've'} another name: {_named(helpers)}."
    companions: list[int] = []
    if unit and not unit.startswith(OF_A_USER):
        with suppress(TargetError):  # no readable control group
            companions = sorted(members_of_unit(unit) - set(family))
    if companions:
        yield (
            f"Its unit has {len(companions)} further process{'' if len(companions) == 1 else 'es'} that it did not "
            f'start: {_named(companions)}. To have them recorded, too, add unit = "{unit}" to [target].'
        )


def _named(pids: Sequence[int]) -> str:
    names = [name_of(pid) for pid in pids]
    counts = Counter(names)
    parts = []
    for name, count in counts.most_common(MOST_NAMED):
        pid = pids[names.index(name)]
        parts.append(f"{name} (pid {pid})" if count == 1 else f"{count} x {name} (pid {pid}, ...)")
    return ", ".join(parts) + (", ..." if len(counts) > MOST_NAMED else "")
