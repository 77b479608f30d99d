"""Pages of a server that Loadframe did not make: what it answers is learnt before it is loaded, and compared from
then."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadframe.connections.bounds import shown
from loadframe.errors import TargetError
from loadframe.model import Checked

CHECKS: tuple[Checked, ...] = ("bytes", "length", "status")
"""What of an answer is looked at: all of it, its status and how long it is, its status alone."""

Ask = Callable[[int], tuple[int, bytes]]
"""Status and body of one GET of a page, by its number."""
MOST_BYTES = 512 << 20
"""Of all pages together: they are kept in memory, and wrk maps them."""


@dataclass(frozen=True, slots=True)
class Page:
    """path: asked for by GET. checked: what is compared of it. where: the key of a study that names it, for advice;
    otherwise: what else would do where it answers with another status."""

    path: str
    checked: Checked
    where: str
    otherwise: str = ""


def learn(address: str, pages: Sequence[Page], ask: Ask) -> tuple[bytes, ...]:
    """The body of each, asked for twice; of one whose status alone is checked nothing is kept. TargetError for one that
    is not there, or that is another one the second time, as far as that is checked, and where they are longer than
    MOST_BYTES together."""
    bodies: list[bytes] = []
    for number, page in enumerate(pages):
        (status, body), (_, again) = ask(number), ask(number)
        if status != http.client.OK:
            raise TargetError(
                f"The server at {address} answers {page.path} with status {status}",
                remedy=f"Name paths that it answers with 200{page.otherwise.format(status=status)} ({page.where}).",
            )
        if not alike(body, again, page.checked):
            what, enough = ("bytes", "length") if len(body) == len(again) else ("lengths", "status")
            raise TargetError(
                f"The server at {address} answers {page.path} with different {what} each time, so it cannot be checked",
                remedy=f'Set workload.options.checked = "{enough}" to have no more than that of its answers '
                f"checked, or leave this path out ({page.where}).",
            )
        bodies.append(b"" if page.checked == "status" else body)
        if sum(map(len, bodies)) > MOST_BYTES:
            raise TargetError(
                f"The pages of {address} up to {page.path} are longer than {shown(MOST_BYTES)} together",
                remedy=f"Name fewer or shorter ones ({page.where}).",
            )
    return tuple(bodies)


def alike(one: bytes, other: bytes, checked: Checked) -> bool:
    """Whether two bodies are the same, as far as that is checked."""
    of_both = {"bytes": one == other, "length": len(one) == len(other), "status": True}
    return of_both[checked]
