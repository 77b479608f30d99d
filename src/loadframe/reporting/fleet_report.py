"""The check of a fleet, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loadframe.model.fleet import FleetCheck, FleetLink, HostCheck
from loadframe.reporting.layout import columns, wrapped
from loadframe.units import show

ENCRYPTS = 0.9


def fleet_json(found: FleetCheck) -> dict[str, Any]:
    """`loadframe.fleet/1`."""
    return {"schema": "loadframe.fleet/1", "fit": found.fit, **asdict(found)}


def render_fleet(found: FleetCheck, *, width: int = 110) -> str:
    """The answer first, then what speaks against it, then the hosts and their links."""
    lines = [_answer(found), ""]
    for each in found.problems:
        mark = "Refused" if each.refuses else "Mind"
        lines += wrapped(f"{mark}: {each.about}: {each.fact}. {each.remedy}".rstrip(), width, indent=0)
    if found.problems:
        lines.append("")
    lines += columns([HEAD, *(_host(each) for each in found.hosts)], SIDES)
    missing = [each for each in found.hosts if each.missing]
    if missing:
        lines += ["", "Not there (`loadframe doctor` on the host says how to get it)"]
        lines += [line for each in missing for line in wrapped(f"{each.name}: {', '.join(each.missing)}", width)]
    if found.links:
        lines += ["", "Links, one encrypted connection each, one after another"]
        lines += columns([LINK_HEAD, *(_link(each) for each in found.links)], LINK_SIDES)
        if any(max(each.there_cpu, each.back_cpu) > ENCRYPTS for each in found.links):
            lines += ["* encryption used nearly a whole CPU: the link carries at least that"]
    return "\n".join(lines)


HEAD = ("host", "roles", "CPUs", "memory", "Loadframe", "Python", "clock off by", "drift, millionths", "CPUs in use")
SIDES = "<<>><<>><"
LINK_HEAD = ("driver", "target", "round trip", "median", "99 %", "there", "back")
LINK_SIDES = "<<>>>>>"


def _answer(found: FleetCheck) -> str:
    reached = sum(each.facts is not None for each in found.hosts)
    fit = "fit to be loaded" if found.fit else "not fit to be loaded as it is"
    return f"Fleet {found.name}: {reached} of {len(found.hosts)} hosts reached, {fit}"


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
        *(_ms(each) for each in (link.round_trip_s, link.median_s, link.p99_s)),
        show(link.there_bytes_per_s, "bytes/s") + "*" * (link.there_cpu > ENCRYPTS),
        show(link.back_bytes_per_s, "bytes/s") + "*" * (link.back_cpu > ENCRYPTS),
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if abs(seconds) < 1 else f"{seconds:.3f} s"
