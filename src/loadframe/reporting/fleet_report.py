"""The check of a fleet, its drivers' result and its hosts' limits, as text and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loadframe.model.fleet import ENCRYPTS, FleetCheck, FleetDrivers, FleetLimit, FleetLink, HostCheck
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import terminal, verdict_words
from loadframe.units import show


def fleet_json(check: FleetCheck) -> dict[str, Any]:
    """`loadframe.fleet/1`."""
    return {"schema": "loadframe.fleet/1", "fit": check.fit, **asdict(check)}


def render_fleet(check: FleetCheck) -> str:
    """The answer first, then the problems, the hosts and their links."""
    problems = (
        f"{'Refused' if problem.refuses else 'Mind'}: {problem.about}: {problem.fact}. {problem.remedy}".rstrip()
        for problem in check.problems
    )
    missing = (f"{host.name}: {', '.join(host.missing)}" for host in check.hosts if host.missing)
    links: list[doc.Block] = [doc.Table(LINK_HEAD, tuple(map(_link, check.links)))]
    if any(max(link.there_cpu, link.back_cpu) > ENCRYPTS for link in check.links):
        links.append(doc.Prose("* encryption used nearly a whole CPU: the link carries at least that"))
    sections = (
        doc.listed("What speaks against it", problems),
        doc.section("Hosts", "hosts", [doc.Table(HEAD, tuple(map(_host, check.hosts)))]),
        doc.listed(NOT_THERE, missing),
        doc.section("Links, one encrypted connection each, one after another", "links", links),
    )
    reached = sum(host.facts is not None for host in check.hosts)
    fit = "fit to be loaded" if check.fit else "not fit to be loaded as it is"
    answer = f"Fleet {check.name}: {reached} of {len(check.hosts)} hosts reached, {fit}"
    return terminal.render(doc.Document("Fleet", (answer,), sections), width=110)


def drivers_sentence(drivers: FleetDrivers) -> str:
    """Whether fewer drivers would have sufficed, and what was full if so."""
    everyone, fewer = len(drivers.drivers), len(drivers.fewer)
    hosts = f"{everyone} drivers", counted(fewer, "driver")
    ratio = verdict_words.measured(drivers.verdict)
    match drivers.limit:
        case "drivers":
            said = f"{hosts[0]} give more than {hosts[1]}: {ratio}. The drivers limit this curve, so add one"
        case "not proven":
            said = f"It is not proven whether {hosts[0]} give more than {hosts[1]}: {ratio}"
        case "link":
            moved, link = (
                show(value or 0.0, "bytes/s") for value in (drivers.moved_bytes_per_s, drivers.link_bytes_per_s)
            )
            full = f"The link from the target is full: {moved} came through it, and it carries {link} by itself"
            said = f"{hosts[0]} give as much as {hosts[1]}: {ratio}. {full}"
        case "target":
            said = f"{hosts[0]} give as much as {hosts[1]}: {ratio}. The drivers do not limit this curve"
    return f"At {drivers.level:g}, {said[0].lower()}{said[1:]}."


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
    table = doc.Table(LIMITS_HEAD, tuple(map(_limit, _ranked(limits))))
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
    return sorted(
        (fleet_limit for fleet_limit in limits if not fleet_limit.unseen),
        key=lambda fleet_limit: -fleet_limit.limit.use / fleet_limit.limit.ceiling,
    )


LIMITS_HEAD: doc.Heads = ("host", "limit", *doc.numbers("use", "of", "share", "runs out at"))


def _limit(fleet_limit: FleetLimit) -> tuple[str, ...]:
    limit = fleet_limit.limit
    title = f"the link to {fleet_limit.driver}" if fleet_limit.driver and fleet_limit.error is None else limit.title
    at = "" if limit.exhausted_at is None else f"{limit.exhausted_at.load:.3g}"
    use, ceiling = (show(value, limit.unit) for value in (limit.use, limit.ceiling))
    use += "" if fleet_limit.error is None else f" +- {show(fleet_limit.error, limit.unit)}"
    return fleet_limit.host, title, use, ceiling, show(limit.use / limit.ceiling, "share"), at


NOT_THERE = "Not there (`loadframe doctor` on the host says how to get it)"
HEAD: doc.Heads = (
    "host", "roles", *doc.numbers("CPUs", "memory"), "Loadframe", "Python",
    *doc.numbers("clock off by", "drift, millionths"), "CPUs in use",
)  # fmt: skip
LINK_HEAD: doc.Heads = ("driver", "target", *doc.numbers("round trip", "median", "99 %", "there", "back"))


def _host(host: HostCheck) -> tuple[str, ...]:
    facts, clock, use = host.facts, host.clock, host.use
    if facts is None or clock is None or use is None:
        return (host.name, " ".join(host.roles), "not reached", *[""] * (len(HEAD) - 3))
    return (
        host.name,
        " ".join(host.roles),
        str(facts.cpus),
        "" if facts.memory_bytes is None else show(facts.memory_bytes, "bytes"),
        facts.loadframe,
        facts.python,
        f"{_ms(clock.offset_s)} +- {_ms(clock.uncertainty_s)}",
        f"{clock.drift * 1e6:+.0f} ({clock.drift_low * 1e6:.0f} to {clock.drift_high * 1e6:.0f})",
        f"{use.busy_cpus:.2f}" + (f" ({use.loudest} {use.loudest_cpus:.2f})" if use.loudest_cpus >= 0.01 else ""),
    )


def _link(link: FleetLink) -> tuple[str, ...]:
    if link.why_not:
        return (link.driver, link.target, "not measured", *[""] * (len(LINK_HEAD) - 3))
    return (
        link.driver,
        link.target,
        *(_ms(seconds) for seconds in (link.round_trip_s, link.median_s, link.p99_s)),
        show(link.there_bytes_per_s, "bytes/s") + "*" * (link.there_cpu > ENCRYPTS),
        show(link.back_bytes_per_s, "bytes/s") + "*" * (link.back_cpu > ENCRYPTS),
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if abs(seconds) < 1 else f"{seconds:.3f} s"
