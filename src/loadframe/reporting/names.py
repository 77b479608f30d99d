"""What ids are called on a page: causes, limits and remedies by their titles, never by an id beside a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loadframe.diagnosis import operational
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.model import Investigation, Limit, RuledOut
from loadframe.reporting import words

TITLES = {
    **{signature.id: signature.title for signature in reversed(SIGNATURES)},
    operational.PARALLELISM: "a fixed number of requests is served at a time",
    operational.SERIAL: "one request is served at a time",
}


@dataclass(frozen=True, slots=True)
class NotIt:
    """A cause that was ruled out: its name, its id, and each reason once."""

    name: str
    id: str
    because: tuple[str, ...]


def ruled_out(inv: Investigation, items: Iterable[RuledOut], *, judged: bool = True) -> list[NotIt]:
    """Each cause once, by its name. judged: those that are not it, or those of which that cannot be told."""
    by_name: dict[str, list[RuledOut]] = {}
    for item in items:
        if item.judged is judged:
            by_name.setdefault(cause(inv, item.id), []).append(item)
    return [
        NotIt(name, found[0].id, tuple(dict.fromkeys(words.sentence(item.because) for item in found)))
        for name, found in by_name.items()
    ]


def limit(one: Limit) -> str:
    """A limit as a heading."""
    return heading(one.title or one.id)


def chain(inv: Investigation, one: Limit) -> str:
    """The limits that cap it, of those that this run read."""
    titles = {each.id: each.title for round_ in inv.rounds for each in round_.limits if each.title}
    return "; ".join(titles[id_] for id_ in one.chain if id_ in titles)


def cause(inv: Investigation, id_: str) -> str:
    """The title of a cause or of a limit, as a heading."""
    return heading(inside(inv, id_))


def inside(inv: Investigation, id_: str) -> str:
    """The same inside a sentence: as a finding or a limit of this run is called, else as its signature is; an id that
    has no title anywhere is spelled out."""
    rounds = (*inv.rounds, *(one.round for one in inv.alternatives))
    titles = {limit.id: limit.title for one in rounds for limit in one.limits if limit.title}
    titles = {**TITLES, **titles, **{each.id: each.title for one in rounds for each in one.findings if each.title}}
    return titles.get(id_, id_.replace(".", ": ", 1).replace("_", " "))


def remedy(inv: Investigation, id_: str) -> str:
    """The title of a remedy that was tried; what is no remedy's id is a title already."""
    titles = {trial.remedy.id: trial.remedy.title for one in inv.rounds for trial in one.tried}
    return heading(titles.get(id_, id_))


def heading(text: str) -> str:
    """With a capital, without a full stop."""
    return words.sentence(text)[:-1]
