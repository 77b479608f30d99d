"""What speaks against measuring with these hosts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from loadframe.model.fleet import FleetLink, FleetProblem, HostCheck, HostFacts
from loadframe.units import show

LOUD, STEAL = 0.20, 0.10
"""Shares of a host's CPUs, as for a step that is called disturbed."""
CLOCK_OFF_S = 1.0
"""Logs and certificates of two hosts are hard to lay side by side beyond that; a load starts together all the same."""
UNSURE_S = 0.05
"""A start at the same time is known to half of a round trip: beyond this, a second's window is unsure by a tenth."""
DRIFT = 500e-6
"""What NTP can still correct (RFC 5905, 11.3): a clock beyond it is broken, or its machine is stopped at times."""


def problems(hosts: Sequence[HostCheck], links: Sequence[FleetLink], here: HostFacts) -> tuple[FleetProblem, ...]:
    """Those that refuse it first. here: of the machine that coordinates."""
    known = {host.name: asdict(host.facts) for host in hosts if host.facts is not None}
    found = [*_without(hosts), *_unreached(hosts), *different(known, asdict(here))]
    found += [*_unlinked(links), *_together(hosts)]
    for host in hosts:
        found += [*_loud(host), *_clock(host)]
    return tuple(sorted(found, key=lambda each: not each.refuses))


def _without(hosts: Sequence[HostCheck]) -> Iterator[FleetProblem]:
    roles, names = {role for host in hosts for role in host.roles}, ", ".join(host.name for host in hosts)
    if "driver" not in roles:
        yield FleetProblem(names, "no host has the role driver", 'Give one roles = ["driver"].', refuses=True)
    if "target" not in roles:
        yield FleetProblem(
            names,
            "no host has the role target: no link was measured, and nothing of the target's machine will be recorded",
            'If it is a machine of yours, give it roles = ["target"].',
            refuses=False,
        )


def _unreached(hosts: Sequence[HostCheck]) -> Iterator[FleetProblem]:
    for host in hosts:
        if host.why_not:
            fact, *more = host.why_not.splitlines()
            yield FleetProblem(host.name, fact, "\n".join(more), refuses=True)


def different(known: Mapping[str, Mapping[str, Any]], here: Mapping[str, Any]) -> Iterator[FleetProblem]:
    """Of two versions one is a treatment that no one asked for. known, here: facts as looking.facts has them. This
    machine is one of those that are compared: it refuses all others before it measures."""
    for what in ("loadframe", "python"):
        having = defaultdict(list)
        for name, facts in known.items():
            having[facts.get(what)].append(name)
        title = what.capitalize()
        for version, names in having.items():
            if version != here[what]:
                yield FleetProblem(
                    ", ".join(names),
                    f"{title} is {version} there and {here[what]} on this machine",
                    f"Install the same {title} on all hosts.",
                    refuses=True,
                )
    mine = here["loadframe"]
    if other := [
        name for name, each in known.items() if each.get("loadframe") == mine and each["code"] != here["code"]
    ]:
        yield FleetProblem(
            ", ".join(other),
            f"Loadframe has the same version there as on this machine ({mine}), but other code",
            "Install Loadframe on all hosts from the same package or checkout, without changes of one's own.",
            refuses=True,
        )


def _unlinked(links: Sequence[FleetLink]) -> Iterator[FleetProblem]:
    for link in links:
        if link.why_not:
            yield FleetProblem(
                f"{link.driver} to {link.target}",
                f"the link was not measured: {link.why_not}",
                f"Give the address by which {link.driver} reaches {link.target}, and let connections through.",
                refuses=True,
            )


def _together(hosts: Sequence[HostCheck]) -> Iterator[FleetProblem]:
    """Two hosts of one kernel share its CPUs, whatever they are called."""
    having = defaultdict(list)
    for host in hosts:
        if host.facts is not None and host.facts.boot:
            having[host.facts.boot].append(host)
    for those in having.values():
        roles = {role for host in those for role in host.roles if role != "observer"}
        if len(those) > 1 and roles:
            yield FleetProblem(
                ", ".join(host.name for host in those),
                "they run on one kernel and share its CPUs, memory and disks",
                "Bind each to CPUs of its own, or use separate machines.",
                refuses=False,
            )


def _loud(host: HostCheck) -> Iterator[FleetProblem]:
    if host.use is None or host.facts is None:
        return
    busy, steal = host.use.busy_cpus / host.facts.cpus, host.use.steal_cpus / host.facts.cpus
    if busy >= LOUD:
        most = f", {host.use.loudest!r} most ({host.use.loudest_cpus:.2f} CPUs)" if host.use.loudest else ""
        yield FleetProblem(
            host.name,
            f"others use {show(busy, 'share')} of its {host.facts.cpus} CPUs{most}",
            "Wait until it is quiet, or end what runs there.",
            refuses=False,
        )
    if steal >= STEAL:
        yield FleetProblem(
            host.name,
            f"other guests of its hardware take {show(steal, 'share')} of its CPUs",
            "Move it to hardware of its own: what is measured there will differ from one hour to the next.",
            refuses=False,
        )


def _clock(host: HostCheck) -> Iterator[FleetProblem]:
    clock = host.clock
    if clock is None:
        return
    if abs(clock.offset_s) - clock.uncertainty_s > CLOCK_OFF_S:
        way = "ahead" if clock.offset_s > 0 else "behind"
        yield FleetProblem(
            host.name,
            f"its wall clock is {abs(clock.offset_s):.3g} s {way}",
            "Let NTP set it. Loads start together all the same: they go by how far it is off.",
            refuses=False,
        )
    if clock.uncertainty_s > UNSURE_S:
        yield FleetProblem(
            host.name,
            f"when its clock shows what is known to {clock.uncertainty_s * 1000:.3g} ms only: a message takes "
            f"{clock.round_trip_s * 1000:.3g} ms there and back",
            "Coordinate from a machine that is nearer, and use windows of several seconds.",
            refuses=False,
        )
    if clock.drift_low > DRIFT or clock.drift_high < -DRIFT:
        yield FleetProblem(
            host.name,
            f"its monotonic clock is {clock.drift * 1e6:,.0f} millionths off its pace "
            f"({clock.drift_low * 1e6:,.0f} to {clock.drift_high * 1e6:,.0f})",
            "Its times cannot be trusted: see its clock source, and whether the machine is stopped at times.",
            refuses=True,
        )
