"""Whether a fleet is fit to be loaded: hosts reached, same programs, clocks, CPU use by others, and links."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from loadframe.errors import FleetError
from loadframe.progress import counted
from loadframe.reporting import document as doc
from loadframe.reporting import terminal
from loadframe.units import show
from loadframe_fleet.clocks import DRIFT, drift, offset
from loadframe_fleet.connection import Agent
from loadframe_fleet.declaration import Fleet, HostTable, Role
from loadframe_fleet.links import Identity
from loadframe_fleet.looking import facts as own_facts
from loadframe_fleet.records import (
    ENCRYPTS,
    FleetCheck,
    FleetLink,
    FleetProblem,
    HostCheck,
    HostClock,
    HostFacts,
    HostUse,
)
from loadframe_fleet.wire import Say

LOUD, STEAL = 0.20, 0.10
"""Shares of a host's CPUs, as for a step that is called disturbed."""
CLOCK_OFF_S = 1.0
"""Beyond this, logs and certificates of two hosts are hard to compare; loads start together nevertheless."""
UNSURE_S = 0.05
"""A simultaneous start is known to half of a round trip: with more, a second's window is unsure by a tenth."""


def problems(hosts: Sequence[HostCheck], links: Sequence[FleetLink], here: HostFacts) -> tuple[FleetProblem, ...]:
    """Refusing ones first. here: of the machine that coordinates."""
    known = {host.name: asdict(host.facts) for host in hosts if host.facts is not None}
    rows = [*_of_fleet(hosts), *different(known, asdict(here)), *_unlinked(links), *_together(hosts)]
    for host in hosts:
        rows += [*_loud(host), *_clock_problems(host)]
    return tuple(sorted(rows, key=lambda problem: not problem.refuses))


def _of_fleet(hosts: Sequence[HostCheck]) -> Iterator[FleetProblem]:
    roles, names = {role for host in hosts for role in host.roles}, ", ".join(host.name for host in hosts)
    if "driver" not in roles:
        yield FleetProblem(names, "no host has the role driver", 'Give one roles = ["driver"].', refuses=True)
    if "target" not in roles:
        yield FleetProblem(
            names,
            "no host has the role target: no link was measured, and nothing of the target's machine will be recorded",
            'If it is a machine of yours, give it roles = ["target"].',
        )
    for host in hosts:
        if host.why_not:
            fact, *more = host.why_not.splitlines()
            yield FleetProblem(host.name, fact, "\n".join(more), refuses=True)


def different(known: Mapping[str, Mapping[str, Any]], here: Mapping[str, Any]) -> Iterator[FleetProblem]:
    """How a host differs: other versions than on this machine would be a treatment that was not asked for. known, here:
    from looking.facts."""
    for what in ("loadframe", "python"):
        having = defaultdict(list)
        for name, facts in known.items():
            having[str(facts.get(what))].append(name)
        having.pop(str(here[what]), None)
        title = what.capitalize()
        for version, names in having.items():
            yield FleetProblem(
                ", ".join(names),
                f"{title} is {version} there and {here[what]} on this machine",
                f"Install the same {title} on all hosts.",
                refuses=True,
            )
    mine = here["loadframe"]
    if other := [
        name for name, facts in known.items() if facts.get("loadframe") == mine and facts.get("code") != here["code"]
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
    having = defaultdict(list)
    for host in hosts:
        if host.facts is not None and host.facts.boot:
            having[host.facts.boot].append(host)
    for those in having.values():
        if len(those) > 1 and any(set(host.roles) - {"observer"} for host in those):
            yield FleetProblem(
                ", ".join(host.name for host in those),
                "they run on one kernel and share its CPUs, memory and disks",
                "Bind each to CPUs of its own, or use separate machines.",
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
        )
    if steal >= STEAL:
        yield FleetProblem(
            host.name,
            f"other guests of its hardware take {show(steal, 'share')} of its CPUs",
            "Move it to hardware of its own: what is measured there will differ from one hour to the next.",
        )


def _clock_problems(host: HostCheck) -> Iterator[FleetProblem]:
    clock = host.clock
    if clock is None:
        return
    if abs(clock.offset_s) - clock.uncertainty_s > CLOCK_OFF_S:
        way = "ahead" if clock.offset_s > 0 else "behind"
        yield FleetProblem(
            host.name,
            f"its wall clock is {abs(clock.offset_s):.3g} s {way}",
            "Let NTP set it. Loads start together all the same: they go by how far it is off.",
        )
    if clock.uncertainty_s > UNSURE_S:
        yield FleetProblem(
            host.name,
            f"when its clock shows what is known to {clock.uncertainty_s * 1000:.3g} ms only: a message takes "
            f"{clock.round_trip_s * 1000:.3g} ms there and back",
            "Coordinate from a machine that is nearer, and use windows of several seconds.",
        )
    if clock.drift_low > DRIFT or clock.drift_high < -DRIFT:
        yield FleetProblem(
            host.name,
            f"its monotonic clock is {clock.drift * 1e6:,.0f} millionths off its pace "
            f"({clock.drift_low * 1e6:,.0f} to {clock.drift_high * 1e6:,.0f})",
            "Its times cannot be trusted: see its clock source, and whether the machine is stopped at times.",
            refuses=True,
        )


ROLES_OF_LINKS: tuple[Role, Role] = "driver", "target"
EXCHANGES = 40
LOOK_S = 2.0
DOCTOR_WITHIN_S = 60.0
LINK_WITHIN_S = 60.0
MOST_AT_ONCE = 64

Result = TypeVar("Result")


def check(fleet: Fleet, say: Say = lambda _: None) -> FleetCheck:
    """What cannot be reached is in the answer. Workers of dask are not checked; FleetError where there is nothing
    else."""
    agents_on = [host for host in fleet.host if not host.worker]
    if not agents_on:
        raise FleetError(
            f"all hosts of the fleet {fleet.fleet.name!r} are workers of dask, which no agent reaches",
            remedy="`loadframe tune STUDY --fleet FILE` checks them before it measures.",
        )
    with ExitStack() as open_agents:
        say(f"Reaching {counted(len(agents_on), 'host')}")
        reached = tried_all(agents_on, fleet.fleet.ssh_config)
        agents = {agent.host.name: open_agents.enter_context(agent) for agent in reached if isinstance(agent, Agent)}
        say(f"Clocks, and who uses the CPUs, for {LOOK_S:g} s")
        seen = _each(_seen, list(agents.values()))
        say("What each host has")
        hosts = dict(zip(agents, _each(_equipped, list(agents.values()), seen), strict=True))
        drivers, targets = (
            [agents[host.name] for host in fleet.with_role(role) if host.name in agents] for role in ROLES_OF_LINKS
        )
        links = links_between([pair for pair in product(drivers, targets) if pair[0] is not pair[1]], say)
    checked = [
        hosts.get(host.name) or HostCheck(host.name, tuple(host.roles), why_not=str(why))
        for host, why in zip(agents_on, reached, strict=True)
    ]
    return FleetCheck(fleet.fleet.name, tuple(checked), links, problems(checked, links, host_facts(own_facts())))


def host_facts(facts: Mapping[str, Any]) -> HostFacts:
    """TypeError for a missing fact."""
    return HostFacts(**{name: value for name, value in facts.items() if name in HostFacts.__dataclass_fields__})


def _each(work: Callable[..., Result], *columns: Sequence[Any]) -> list[Result]:
    with ThreadPoolExecutor(max_workers=max(1, min(MOST_AT_ONCE, len(columns[0])))) as pool:
        return list(pool.map(work, *columns))


def tried_all(hosts: Sequence[HostTable], ssh_config: Path | None) -> list[Agent | FleetError]:
    def tried(host: HostTable) -> Agent | FleetError:
        try:
            return Agent(host, ssh_config)
        except FleetError as error:
            return error

    return _each(tried, hosts)


def _seen(agent: Agent) -> HostCheck:
    """Quiet, except for this: nothing else is asked of any host at this time."""
    checked = HostCheck(agent.host.name, tuple(agent.host.roles))
    try:
        facts = host_facts(agent.facts)
        wall, begin = (offset(exchanges) for exchanges in agent.exchanges(EXCHANGES))
        use = HostUse(**agent.ask("cpus", LOOK_S + 30, seconds=LOOK_S))
        _, end = (offset(exchanges) for exchanges in agent.exchanges(EXCHANGES))
        rate = drift(begin, end)
        clock = HostClock(wall.offset_s, wall.uncertainty_s, wall.round_trip_s, rate.rate, rate.low, rate.high)
        return replace(checked, facts=facts, clock=clock, use=use)
    except FleetError as error:
        return replace(checked, why_not=str(error))
    except (KeyError, TypeError, ValueError) as error:
        return replace(checked, why_not=f"its agent answers with something else: {error}")


def _equipped(agent: Agent, checked: HostCheck) -> HostCheck:
    """After the quiet measurement, as it takes a second of a CPU."""
    if checked.why_not:
        return checked
    try:
        return replace(checked, missing=tuple(map(str, agent.ask("doctor", DOCTOR_WITHIN_S)["missing"])))
    except (FleetError, KeyError, TypeError) as error:
        return HostCheck(checked.name, checked.roles, why_not=f"it cannot be examined: {error}")


def links_between(pairs: Sequence[tuple[Agent, Agent]], say: Say) -> tuple[FleetLink, ...]:
    """Measured one after another, as two at a time would share what they have in common."""
    return tuple(_link(driver, target, say) for driver, target in pairs)


def _link(driver: Agent, target: Agent, say: Say) -> FleetLink:
    names = driver.host.name, target.host.name
    say(f"The link from {names[0]} to {names[1]}")
    if not target.host.address:
        return FleetLink(*names, why_not=f"host {target.host.name!r} has no address in the fleet file")
    own: dict[str, Any] = {"address": target.host.address, **asdict(made_identity())}
    try:
        port = target.ask("listen", 10, **own)["port"]
        try:
            carried = driver.ask("link", LINK_WITHIN_S, port=port, **own)
        finally:
            target.ask("listen_no_more", 10)
        return FleetLink(*names, **carried)
    except FleetError as error:
        return FleetLink(*names, why_not=error.fact)
    except TypeError as error:
        return FleetLink(*names, why_not=f"an agent answers with something else: {error}")


CLOCKS_OFF = datetime.timedelta(days=2)
"""Hosts whose clocks are off are for the check to find; their links can be measured nevertheless."""


def made_identity() -> Identity:
    """A new self-signed certificate, for both ends of one link."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Loadframe, one link")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_OFF)
        .not_valid_after(now + CLOCKS_OFF)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private_key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(certificate.public_bytes(pem).decode(), private_key.decode())


NOT_THERE = "Not there (`loadframe doctor` on the host says how to get it)"
HEAD: doc.Heads = (
    "host", "roles", *doc.numbers("CPUs", "memory"), "Loadframe", "Python",
    *doc.numbers("clock off by", "drift, millionths"), "CPUs in use",
)  # fmt: skip
LINK_HEAD: doc.Heads = ("driver", "target", *doc.numbers("round trip", "median", "99 %", "there", "back"))


def fleet_json(check: FleetCheck) -> dict[str, Any]:
    return {"schema": "loadframe.fleet/1", "fit": check.fit, **asdict(check)}


def render_fleet(check: FleetCheck) -> str:
    problems = (
        f"{'Refused' if problem.refuses else 'Mind'}: {problem.about}: {problem.fact}. {problem.remedy}".rstrip()
        for problem in check.problems
    )
    missing = (f"{host.name}: {', '.join(host.missing)}" for host in check.hosts if host.missing)
    links: list[doc.Block] = [doc.Table(LINK_HEAD, tuple(map(_link_row, check.links)))]
    if any(max(link.there_cpu, link.back_cpu) > ENCRYPTS for link in check.links):
        links.append(doc.Prose("* encryption used nearly a whole CPU: the link carries at least that"))
    sections = (
        doc.listed("What speaks against it", problems),
        doc.section("Hosts", "hosts", [doc.Table(HEAD, tuple(map(_host_row, check.hosts)))]),
        doc.listed(NOT_THERE, missing),
        doc.section("Links, one encrypted connection each, one after another", "links", links),
    )
    reached = sum(host.facts is not None for host in check.hosts)
    fit = "fit to be loaded" if check.fit else "not fit to be loaded as it is"
    answer = f"Fleet {check.name}: {reached} of {len(check.hosts)} hosts reached, {fit}"
    return terminal.render(doc.Document("Fleet", (answer,), sections), width=110)


def _host_row(host: HostCheck) -> tuple[str, ...]:
    facts, clock, use = host.facts, host.clock, host.use
    if facts is None or clock is None or use is None:
        return (host.name, " ".join(host.roles), "not reached", *[""] * (len(HEAD) - 3))
    memory = "" if facts.memory_bytes is None else show(facts.memory_bytes, "bytes")
    return (
        *(host.name, " ".join(host.roles), str(facts.cpus), memory, facts.loadframe, facts.python),
        f"{_ms(clock.offset_s)} +- {_ms(clock.uncertainty_s)}",
        f"{clock.drift * 1e6:+.0f} ({clock.drift_low * 1e6:.0f} to {clock.drift_high * 1e6:.0f})",
        f"{use.busy_cpus:.2f}" + (f" ({use.loudest} {use.loudest_cpus:.2f})" if use.loudest_cpus >= 0.01 else ""),
    )


def _link_row(link: FleetLink) -> tuple[str, ...]:
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
