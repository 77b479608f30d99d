"""Pages of a server that Loadframe did not make: what it answers is learnt before it is loaded, and compared from
then."""

import http.client
from collections.abc import Callable, Sequence

from loadframe.connections.bounds import shown
from loadframe.errors import TargetError
from loadframe.model import Checked
from loadframe.workloads.asking import Answer
from loadframe.workloads.asks import Ask, Learnt

MOST_BYTES = 512 << 20
"""Of all pages together: they are kept in memory, and wrk maps them."""


def learn(
    address: str, pages: Sequence[Ask], get: Callable[[Ask], Answer], where: str, otherwise: str
) -> tuple[Learnt, ...]:
    """Each, asked for twice by `get`. where: the key of a study that names them, for advice; otherwise: what else would
    do where one answers with another status. TargetError for one that is not there, or that is another one the second
    time, as far as that is checked, or has not the words that it should have, and where they are longer than MOST_BYTES
    together."""
    known: list[Learnt] = []
    for page in pages:
        answer, again = get(page), get(page).body
        status, body = answer.status, answer.body
        if status != http.client.OK:
            raise TargetError(
                f"The server at {address} answers {page.path} with status {status}",
                remedy=f"Name paths that it answers with 200{otherwise.format(status=status)} ({where}).",
            )
        if not alike(body, again, page.checked):
            what, enough = ("bytes", "length") if len(body) == len(again) else ("lengths", "size")
            raise TargetError(
                f"The server at {address} answers {page.path} with different {what} each time, so it cannot be checked",
                remedy=f'Set workload.options.checked = "{enough}" to have no more than that of its answers '
                f"checked, or leave this path out ({where}).",
            )
        if wrong := wrong_words(body, page.contains, page.fails):
            raise TargetError(
                f"The server at {address} answers {page.path} with a body that {wrong}",
                remedy=f"Correct contains and fails of this request ({where}), or see the server's log.",
            )
        kept = body if page.checked in ("bytes", "length") else b""
        known.append(Learnt(kept, *sorted((len(body), len(again)))))
        if sum(len(one.body) for one in known) > MOST_BYTES:
            raise TargetError(
                f"The pages of {address} up to {page.path} are longer than {shown(MOST_BYTES)} together",
                remedy=f"Name fewer or shorter ones ({where}).",
            )
    return tuple(known)


def alike(one: bytes, other: bytes, checked: Checked) -> bool:
    """Whether two bodies are the same, as far as one says what the other has to be."""
    of_both = {"bytes": one == other, "length": len(one) == len(other)}
    return of_both.get(checked, True)


def wrong_words(body: bytes, contains: bytes, fails: bytes) -> str:
    """What is wrong with the words of an answer, after "a body that"; "" for nothing."""
    if fails and fails in body:
        return f"has {fails.decode()!r}, which no right one has"
    if contains and contains not in body:
        return f"does not have {contains.decode()!r}"
    return ""
