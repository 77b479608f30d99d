"""Whether the drivers of a fleet limit its curve, and its hosts' limits."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loadframe.model import FleetDrivers, FleetLimit
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import verdict_words
from loadframe.units import show


def drivers_sentence(drivers: FleetDrivers) -> str:
    """Whether fewer drivers would have sufficed, and what was full if so."""
    everyone, fewer = f"{len(drivers.drivers)} drivers", counted(len(drivers.fewer), "driver")
    ratio = verdict_words.measured(drivers.verdict)
    moved, link = (show(value or 0.0, "bytes/s") for value in (drivers.moved_bytes_per_s, drivers.link_bytes_per_s))
    match drivers.limit:
        case "drivers":
            finding = f"{everyone} give more than {fewer}: {ratio}. The drivers limit this curve, so add one"
        case "not proven":
            finding = f"it is not proven whether {everyone} give more than {fewer}: {ratio}"
        case "link":
            full = f"The link from the target is full: {moved} came through it, and it carries {link} by itself"
            finding = f"{everyone} give as much as {fewer}: {ratio}. {full}"
        case "target":
            finding = f"{everyone} give as much as {fewer}: {ratio}. The drivers do not limit this curve"
    return f"At {drivers.level:g}, {finding}."


def fleet_limits_json(limits: Sequence[FleetLimit]) -> list[dict[str, Any]]:
    """The field `fleet_limits` of a measurement's document."""
    return [
        {
            "host": fleet_limit.host,
            "driver": fleet_limit.driver,
            **asdict(fleet_limit.limit),
            **(dict.fromkeys(("use", "headroom")) if fleet_limit.unseen else {}),
            "error": fleet_limit.error,
            "unseen": fleet_limit.unseen,
        }
        for fleet_limit in limits
    ]


def fleet_limits(limits: Sequence[FleetLimit]) -> doc.Section:
    """Each limit of each host, the fullest first."""
    heads: doc.Heads = ("host", "limit", *doc.numbers("use", "of", "share", "runs out at"))
    table = doc.Table(heads, tuple(map(_limit, _ranked(limits))))
    unseen = (
        doc.Prose(f"Host {fleet_limit.host}: {fleet_limit.limit.title} cannot be seen: {fleet_limit.unseen}.")
        for fleet_limit in limits
        if fleet_limit.unseen
    )
    return doc.section("Limits of the hosts", "hosts", (table, *unseen))


def fleet_limits_sentences(limits: Sequence[FleetLimit]) -> list[str]:
    """What is reached or near on each host and link; else the fullest."""
    ranked = _ranked(limits)
    urgent = [fleet_limit for fleet_limit in ranked if fleet_limit.limit.status != "free"] or ranked[:1]
    return [
        f"Host {host}: {title}, {use} of {ceiling} ({share})."
        for host, title, use, ceiling, share, _ in map(_limit, urgent)
    ]


def _ranked(limits: Sequence[FleetLimit]) -> list[FleetLimit]:
    seen = (fleet_limit for fleet_limit in limits if not fleet_limit.unseen)
    return sorted(seen, key=lambda fleet_limit: -fleet_limit.limit.use / fleet_limit.limit.ceiling)


def _limit(fleet_limit: FleetLimit) -> tuple[str, ...]:
    limit = fleet_limit.limit
    title = f"the link to {fleet_limit.driver}" if fleet_limit.driver and fleet_limit.error is None else limit.title
    at = "" if limit.exhausted_at is None else f"{limit.exhausted_at.load:.3g}"
    use, ceiling = (show(value, limit.unit) for value in (limit.use, limit.ceiling))
    use += "" if fleet_limit.error is None else f" +- {show(fleet_limit.error, limit.unit)}"
    return fleet_limit.host, title, use, ceiling, show(limit.use / limit.ceiling, "share"), at
