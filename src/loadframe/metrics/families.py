"""Metrics whose names contain the name of a peer, of a component, or of a program outside the study."""

import re
from collections.abc import Mapping

from loadframe.metrics.pipelines import rows

_OF_A_PEER = """
connections      | count | connections of {component} to {peer}, average
connections_most | count | connections of {component} to {peer}, most at once
busy             | count | connections of {component} to {peer} on which an answer was awaited, average
busy_most        | count | connections of {component} to {peer} on which an answer was awaited, most at once
waiting          | count | threads of {component} that waited for {peer}, average
retransmits      | 1/s   | segments sent to {peer} again
inside           | share | whether {component} itself listens at {peer}
"""
"""End of the name | unit | what. The name is COMPONENT.peer.PEER.END."""
_PEER = re.compile(r"([a-z][a-z0-9_-]*)\.peer\.(.+)\.([a-z_]+)")
_STRANGER = re.compile(r"stranger\.([a-z][a-z0-9_-]*)\.cores")
_COMPONENT = re.compile(r"[a-z][a-z0-9_-]*")
OF_EACH_COMPONENT = tuple(
    f"target.{part}"
    for part in (
        *("cage.", "cpu.", "processes.", "threads.", "open_files", "memory.rss", "io.", "paging.", "context_switches."),
        *("waits.", "peers.", "served.", "accept_queue", "runtime."),
    )
)
"""Beginnings of the names that the recorder has for every component, written for the target."""


def peer_of(name: str) -> str | None:
    """The peer that a metric is of; None for another metric."""
    match = _PEER.fullmatch(name)
    return match[2] if match is not None and match[3] in _PEERS else None


def stranger_of(name: str) -> str | None:
    """The program outside the study that a metric is of; None for another metric."""
    match = _STRANGER.fullmatch(name)
    return None if match is None else match[1]


def told(name: str, registered: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Unit and one line for people of a metric of a family; None for any other. registered: of those in tables."""
    if (match := _PEER.fullmatch(name)) is not None:
        component, peer, end = match.groups()
        if end not in _PEERS:
            return None
        unit, what = _PEERS[end]
        return unit, what.format(component=_words(component), peer="all others together" if peer == "others" else peer)
    if (stranger := _STRANGER.fullmatch(name)) is not None:
        return "s/s", f"CPU time of {stranger[1]}, which is outside the study"
    component, _, rest = name.partition(".")
    whole = f"target.{rest}"
    if not whole.startswith(OF_EACH_COMPONENT) or whole not in registered or not _COMPONENT.fullmatch(component):
        return None
    unit, what = registered[whole]
    return unit, what.replace("the target", _words(component))


def _words(component: str) -> str:
    return {"target": "the target", "driver": "the load driver"}.get(component, component)


_PEERS = rows(_OF_A_PEER)
