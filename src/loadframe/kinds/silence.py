"""Servers that do not answer: what is said of them."""

from collections.abc import Iterable

from loadframe.connections.unix_socket import LET_IT_GO_ON
from loadframe.errors import TargetError
from loadframe.host.signals import told

REFUSED_REMEDY = "Its log says more. Correct the study or the server, and run it again."
BUSY_REMEDY = "Its log and its list of connections say what it waits for. Run it again once that is over."


def silence(server: str, asked: str, seconds: float, pids: Iterable[int]) -> TargetError:
    """That a server has not answered; pids: its processes, as far as they are in sight."""
    why = told(pids)
    return TargetError(
        f"{server} did not answer `{asked}` within {seconds:.0f} s{why and ': '}{why}",
        remedy=LET_IT_GO_ON
        if why
        else "Look at its log, and at what its machine and disk do; run it again once it answers.",
    )


def shortened(statement: str) -> str:
    """A statement as messages quote it: in one line, of at most 80 characters."""
    shown = " ".join(statement.split())
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
