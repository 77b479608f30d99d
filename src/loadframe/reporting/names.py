"""What ids are called on a page: causes, limits and remedies by their titles, never by an id beside a sentence."""

from __future__ import annotations

from loadframe.diagnosis import operational
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.model import Investigation, Limit
from loadframe.reporting import words

TITLES = {
    **{signature.id: signature.title for signature in reversed(SIGNATURES)},
    operational.PARALLELISM: "a fixed number of requests is served at a time",
    operational.SERIAL: "one request is served at a time",
}


def chain(inv: Investigation, one: Limit) -> str:
    """The limits that cap it, of those that this run read."""
    titles = {each.id: each.title for round_ in inv.rounds for each in round_.limits if each.title}
    return "; ".join(titles[id_] for id_ in one.chain if id_ in titles)


def cause(inv: Investigation, id_: str) -> str:
    """The title of a cause or of a limit, as a heading."""
    return heading(inside(inv, id_))


def inside(inv: Investigation, id_: str) -> str:
    """The same inside a sentence: a finding's or limit's of this run, else its signature's; an id without one is
    spelled out."""
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
