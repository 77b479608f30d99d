"""What a run over a fleet says of its hosts: their limits, those of their links, and the host of each finding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from loadframe.experiments.examination import with_saturation
from loadframe.experiments.side_by_side import START
from loadframe.knowledge.rows import LimitRule
from loadframe.ledger.reading import judge, read_limits
from loadframe.ledger.rules import RULES
from loadframe.model import Evidence, Finding, FleetLimit, HostsOfRun, Limit, Round, Step, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.units import show
from loadframe_fleet.records import ENCRYPTS, LINKS, STEPS, FleetLink, FleetStep

OF_A_HOST = tuple(rule for rule in RULES if rule.id in ("cpu.saturated", "system.memory"))
OF_A_LINK = replace(
    next(rule for rule in RULES if rule.id == "network.link"),
    title="the link",
    now_only="",
    near=0.85,
    source="bytes of answers that the driver counted, against one encrypted connection by itself; near: 85 %, as HTTP, "
    "TCP and IP take the rest",
)
OTHERS = "network.others"
"""Id of the limit and finding that a link has other traffic than the load."""
OTHERS_METRIC = "system.network.others"
TAKES = 0.10
"""Share of a link's capacity from which other traffic is a finding, after subtraction of its measurement error."""
MORE_THAN_A_LINK = 1.05
"""Above this multiple of the best link's capacity, that link is the driver's limit, not the target host's."""


def hosts_of_run(run: RunFolder, rounds: Sequence[Round]) -> HostsOfRun:
    """The limits of hosts and links, and the rounds with the host of each finding: the busiest driver for one about
    drivers, else the target's. Other traffic on a link is a finding of the first round. RunError."""
    limits = limits_of_fleet(run)
    others = tuple(others_found(limits))
    steps = [step for step in STEPS.of(run) if not step.void]
    if not (steps and rounds):
        return HostsOfRun(tuple(rounds), limits, others)
    used = {
        driver.host: max(step.metrics.get(driver.host, {}).get("driver.saturation", 0.0) for step in steps)
        for driver in steps[-1].drivers
    }
    busiest, target = max(used, key=lambda host: used[host], default=""), steps[-1].target
    first, *more = (
        replace(
            round_,
            findings=tuple(
                replace(finding, host=busiest if finding.id.startswith("driver.") else target)
                for finding in round_.findings
            ),
        )
        for round_ in rounds
    )
    return HostsOfRun((replace(first, findings=(*first.findings, *others)), *more), limits, others)


def limits_of_fleet(run: RunFolder) -> tuple[FleetLimit, ...]:
    """The limits in the steps of the first curve, hosts in their order. Empty where no fleet drove. RunError."""
    taken = _taken(run)
    if not taken:
        return ()
    highest = max(step.level for step, _ in taken)
    hosts = dict.fromkeys(host for _, there in taken for host in there.metrics)
    of_hosts = []
    for host in hosts:
        seen = [(step, there.metrics[host]) for step, there in taken if host in there.metrics]
        of_hosts += [FleetLimit(host, "", limit) for limit in _read(seen, OF_A_HOST, highest)]
    links = LINKS.of(run)
    return (*of_hosts, *_of_links(taken, links, highest), *_of_others(taken, links))


def others_found(limits: Sequence[FleetLimit]) -> Iterator[Finding]:
    """A finding for each link of which other traffic takes TAKES or more even after subtraction of its error."""
    for fleet_limit in limits:
        limit, host, driver = fleet_limit.limit, fleet_limit.host, fleet_limit.driver
        seen, least = limit.use - (fleet_limit.error or 0.0), TAKES * limit.ceiling
        if limit.id != OTHERS or fleet_limit.unseen or seen < least:
            continue
        where = f"from {host} to {driver}" if driver else f"of {host}"
        yield Finding(
            id=OTHERS,
            title=f"Traffic that is not of the load takes the link {where}",
            reached_at=None,
            evidence=(Evidence(limit.use_metric, seen, ">=", least, "the first curve", limit.source),),
            score=min(1.0, seen / limit.ceiling),
            explanation=f"{show(seen, limit.unit)} at least, of {show(limit.ceiling, limit.unit)} that it carries by "
            "itself. See who sends there.",
            host=driver or host,
        )


def _taken(run: RunFolder) -> list[tuple[Step, FleetStep]]:
    there = {step.name: step for step in STEPS.of(run) if not step.void}
    named = [(step, f"step-{step.number:05d}") for step in (run.steps() if there else ())]
    return [
        (step, there[name])
        for step, name in named
        if name in there and step.counts and step.treatment == START and step.purpose == "curve"
    ]


def _of_links(
    taken: Sequence[tuple[Step, FleetStep]], links: Sequence[FleetLink], highest: float
) -> Iterator[FleetLimit]:
    carried = _carried(links)
    targets = {link.driver: link.target for link in links}
    for driver, rate in carried.items():
        moved = [(step, there.moved_bytes_per_s[driver]) for step, there in taken if driver in there.moved_bytes_per_s]
        for limit in _read([(step, _link(value, rate)) for step, value in moved], (OF_A_LINK,), highest):
            yield FleetLimit(targets[driver], driver, limit)
    together = [(step, sum(there.moved_bytes_per_s.values())) for step, there in taken if there.moved_bytes_per_s]
    if not carried or not together or len(carried) < len(targets):
        return
    best = max(carried.values())
    if max(value for _, value in together) > MORE_THAN_A_LINK * best:
        return
    whole = replace(OF_A_LINK, title="all that leaves it, against the most that one link from it carries")
    for limit in _read([(step, _link(value, best)) for step, value in together], (whole,), highest):
        yield FleetLimit(next(iter(targets.values())), "", limit)


def _of_others(taken: Sequence[tuple[Step, FleetStep]], links: Sequence[FleetLink]) -> Iterator[FleetLimit]:
    """Other traffic of each link, in the step that had most; and what else left the target's host."""
    target = next((there.target for _, there in taken if there.target), "")
    rates = _carried(links)
    hosts = dict.fromkeys(host for _, there in taken for host in there.links)
    for host in hosts:
        ceiling = max(rates.values(), default=0.0) if host == target else rates.get(host, 0.0)
        uses = [there.links[host] for _, there in taken if host in there.links]
        seen = [use for use in uses if not use.why_not]
        most = max(seen, key=lambda use: use.others_bytes_per_s - use.error_bytes_per_s, default=uses[-1])
        unseen = most.why_not or ("" if ceiling else "what the link carries by itself is not known")
        driver = "" if host == target else host
        place = f"the link to {driver}" if driver else "its own link"
        use = most.others_bytes_per_s
        limit = Limit(
            id=OTHERS, layer=OF_A_LINK.layer, ceiling=ceiling, configured=None, effective=ceiling, use=use,
            headroom=max(0.0, ceiling - use), loud=False, exhausted_at=None, unit="bytes/s", use_metric=OTHERS_METRIC,
            source="/proc/net/dev of the interface, less the load and its headers", title=f"other traffic on {place}",
            near=TAKES, status="" if unseen else judge(use, ceiling, near=TAKES, pressure=False),
        )  # fmt: skip
        yield FleetLimit(target, driver, limit, None if unseen else most.error_bytes_per_s, unseen)


def _carried(links: Sequence[FleetLink]) -> dict[str, float]:
    """What each link carries by itself (bytes/s), by driver, where its encryption is not the limit."""
    return {link.driver: link.back_bytes_per_s for link in links if not link.why_not and link.back_cpu < ENCRYPTS}


def _link(moved: float, rate: float) -> dict[str, float]:
    return {OF_A_LINK.use: moved, OF_A_LINK.ceiling: rate}


def _read(
    seen: Sequence[tuple[Step, Mapping[str, float]]], rules: Sequence[LimitRule], highest: float
) -> Iterator[Limit]:
    steps = [replace(step, metrics=dict(metrics)) for step, metrics in seen]
    near = {rule.id: rule.near for rule in rules}
    for series in read_limits(steps, TargetState(), {}, rules):
        limit = with_saturation(series, highest)
        status = judge(limit.use, limit.ceiling, near=near[limit.id], pressure=False)
        yield replace(limit, near=near[limit.id], status=status)
