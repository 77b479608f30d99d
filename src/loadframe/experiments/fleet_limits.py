"""The limits of a fleet: hosts, links, the host of each finding; and whether the drivers limit a curve."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Protocol, runtime_checkable

from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.examination import with_saturation
from loadframe.experiments.proof import compared
from loadframe.experiments.side_by_side import START
from loadframe.knowledge.rows import LimitRule
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import RULES
from loadframe.model import (
    CLIENT_AXES,
    RATE_AXES,
    REACHED,
    Curve,
    Evidence,
    Finding,
    Limit,
    LimitStatus,
    Round,
    Step,
    StepRequest,
    TargetState,
    Verdict,
)
from loadframe.model.fleet import ENCRYPTS, DriversLimit, FleetDrivers, FleetLimit, FleetLink, FleetStep
from loadframe.runs import fleet_files
from loadframe.runs.folder import RunFolder
from loadframe.units import show

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
"""Id of the limit, and of the finding, that a link has other traffic than the load."""
OTHERS_METRIC = "system.network.others"
TAKES = 0.10
"""Share of a link's capacity from which other traffic is a finding, after subtraction of its measurement error."""
MORE_THAN_A_LINK = 1.05
"""Above this multiple of the best link's capacity, that link is the driver's limit, not the target host's."""


def limits_of_fleet(run: RunFolder) -> tuple[FleetLimit, ...]:
    """From the steps of the first curve, hosts in the order of the steps. Empty where no fleet drove. RunError."""
    taken = _taken(run)
    if not taken:
        return ()
    highest = max(step.level for step, _ in taken)
    hosts = dict.fromkeys(host for _, there in taken for host in there.metrics)
    of_hosts = []
    for host in hosts:
        seen = [(step, there.metrics[host]) for step, there in taken if host in there.metrics]
        of_hosts += [FleetLimit(host, "", limit) for limit in _read(seen, OF_A_HOST, highest)]
    links = fleet_files.LINKS.of(run)
    return (*of_hosts, *_of_links(taken, links, highest), *_of_others(taken, links))


def with_hosts(rounds: Sequence[Round], run: RunFolder) -> list[Round]:
    """Each finding with its host: the busiest driver for one about drivers, else the target's. RunError."""
    steps = [step for step in fleet_files.STEPS.of(run) if not step.void]
    if not steps:
        return list(rounds)
    used = {
        driver.host: max(step.metrics.get(driver.host, {}).get("driver.saturation", 0.0) for step in steps)
        for driver in steps[-1].drivers
    }
    busiest, target = max(used, key=lambda host: used[host], default=""), steps[-1].target
    placed = [
        replace(
            round_,
            findings=tuple(
                replace(finding, host=busiest if finding.id.startswith("driver.") else target)
                for finding in round_.findings
            ),
        )
        for round_ in rounds
    ]
    others = tuple(others_found(limits_of_fleet(run)))
    return [replace(placed[0], findings=(*placed[0].findings, *others)), *placed[1:]] if placed else placed


def others_found(limits: Sequence[FleetLimit]) -> Iterator[Finding]:
    """A finding for each link of which other traffic takes TAKES or more even after subtraction of its error."""
    for fleet_limit in limits:
        limit, error = fleet_limit.limit, fleet_limit.error or 0.0
        if limit.id != OTHERS or fleet_limit.unseen or limit.use - error < TAKES * limit.ceiling:
            continue
        where = (
            f"the link from {fleet_limit.host} to {fleet_limit.driver}"
            if fleet_limit.driver
            else f"the link of {fleet_limit.host}"
        )
        seen, least = limit.use - error, TAKES * limit.ceiling
        yield Finding(
            id=OTHERS,
            title=f"Traffic that is not of the load takes {where}",
            reached_at=None,
            evidence=(Evidence(limit.use_metric, seen, ">=", least, "the first curve", limit.source),),
            score=min(1.0, seen / limit.ceiling),
            explanation=f"{show(seen, limit.unit)} at least, of {show(limit.ceiling, limit.unit)} that it carries by "
            "itself. See who sends there.",
            host=fleet_limit.driver or fleet_limit.host,
        )


def _taken(run: RunFolder) -> list[tuple[Step, FleetStep]]:
    there = {step.name: step for step in fleet_files.STEPS.of(run) if not step.void}
    if not there:
        return []
    named = [(step, there.get(f"step-{step.number:05d}")) for step in run.steps()]
    return [
        (step, fleet_step)
        for step, fleet_step in named
        if fleet_step is not None and step.counts and step.treatment == START and step.purpose == "curve"
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
        driver = "" if host == target else host
        if not seen:
            yield _others_of(target, driver, 0.0, ceiling, unseen=uses[-1].why_not)
            continue
        most = max(seen, key=lambda use: use.others_bytes_per_s - use.error_bytes_per_s)
        unknown = "" if ceiling else "what the link carries by itself is not known"
        yield _others_of(target, driver, most.others_bytes_per_s, ceiling, most.error_bytes_per_s, unknown)


def _carried(links: Sequence[FleetLink]) -> dict[str, float]:
    """What each link carries by itself (bytes/s), by driver, where its encryption is not the limit."""
    return {link.driver: link.back_bytes_per_s for link in links if not link.why_not and link.back_cpu < ENCRYPTS}


def _others_of(
    host: str, driver: str, use: float, ceiling: float, error: float | None = None, unseen: str = ""
) -> FleetLimit:
    place = f"the link to {driver}" if driver else "its own link"
    limit = Limit(
        id=OTHERS, layer=OF_A_LINK.layer, ceiling=ceiling, configured=None, effective=ceiling, use=use,
        headroom=max(0.0, ceiling - use), loud=False, exhausted_at=None, unit="bytes/s", use_metric=OTHERS_METRIC,
        source="/proc/net/dev of the interface, less the load and its headers", title=f"other traffic on {place}",
        near=TAKES, status="" if unseen else _status(use / ceiling, TAKES),
    )  # fmt: skip
    return FleetLimit(host, driver, limit, None if unseen else error, unseen)


def _link(moved: float, rate: float) -> dict[str, float]:
    return {OF_A_LINK.use: moved, OF_A_LINK.ceiling: rate}


def _read(
    seen: Sequence[tuple[Step, Mapping[str, float]]], rules: Sequence[LimitRule], highest: float
) -> Iterator[Limit]:
    steps = [replace(step, metrics=dict(metrics)) for step, metrics in seen]
    near = {rule.id: rule.near for rule in rules}
    for series in read_limits(steps, TargetState(), {}, rules):
        limit = with_saturation(series, highest)
        yield replace(limit, near=near[limit.id], status=_status(limit.use / limit.ceiling, near[limit.id]))


def _status(share: float, near: float | None) -> LimitStatus:
    if share >= REACHED:
        return "reached"
    return "near" if near is not None and share >= near else "free"


ALIKE = 0.5
"""Where drivers are the limit, all of n give n / m of what m give. They are not where the interval excludes half of
that difference: fewer connections per driver alone may gain a per cent."""
FULL = 0.85
"""Share of what a link carries by itself: HTTP, TCP and IP take the rest."""


@runtime_checkable
class DrivenByHosts(Protocol):
    """A bench whose load comes from several hosts."""

    @property
    def drivers(self) -> tuple[str, ...]:
        """The hosts that may drive."""

    def drive_from(self, hosts: Sequence[str]) -> None:
        """Set the hosts that drive the next steps."""

    def link_bytes_per_s(self) -> float | None:
        """The most that one link from the target to a driver carries, measured on first use; None where unknown."""


def beside_fewer(book: Bookkeeping, treatment: str, curve: Curve) -> FleetDrivers | None:
    """Compare all drivers with all but the last at one load; None for one host or too little budget. StepVoid."""
    bench, blocks = book.bench, book.bench.study.measure.blocks
    if not isinstance(bench, DrivenByHosts) or not curve.points:
        return None
    bench.link_bytes_per_s()  # kept in the run, even where nothing else is measured
    if len(bench.drivers) < 2:
        return None
    # On an axis other than clients or rate the same clients ask for more, so the last point: what the curve shows.
    of_clients = bench.study.load.axis in CLIENT_AXES | RATE_AXES
    level = (curve.peak if of_clients else curve.points[-1]).load
    if level < len(bench.drivers) or not book.budget.affords([level] * 2 * blocks.min):
        return None
    return beside(book, treatment, level, bench.drivers[:-1])


def beside(book: Bookkeeping, treatment: str, level: float, fewer: tuple[str, ...]) -> FleetDrivers:
    """Compare all drivers with these of them, with as many connections. Kept in the run. StepVoid."""
    bench, blocks = book.bench, book.bench.study.measure.blocks
    assert isinstance(bench, DrivenByHosts), "hosts drive it"
    everyone = bench.drivers
    less = book.next_treatment(f"driven by {', '.join(fewer)}", bench.start_state)
    sides = {treatment: everyone, less: fewer}
    book.progress.phase(f"{len(everyone)} drivers beside {len(fewer)} at {level:g}", 2 * blocks.min)
    taken: list[Step] = []
    try:
        for block in range(1, blocks.max + 1):
            if block > blocks.min and not book.budget.affords([level] * 2):
                break
            for name in book.random.sample(list(sides), len(sides)):
                bench.drive_from(sides[name])
                taken.append(book.take(StepRequest(name, level, block=block, purpose="proof")))
    finally:
        bench.drive_from(everyone)
    drivers = judge(taken, treatment, less, everyone, fewer, bench.link_bytes_per_s())
    fleet_files.DRIVERS.add(bench.run, drivers)
    return drivers


def judge(
    steps: Sequence[Step],
    treatment: str,
    less: str,
    everyone: tuple[str, ...],
    fewer: tuple[str, ...],
    link_bytes_per_s: float | None,
) -> FleetDrivers:
    """What such steps, all of one level, show."""
    comparison = compared(steps, less, treatment)
    of_all = [step for step in steps if step.treatment == treatment]
    moved = [step.metrics["workload.bytes"] for step in of_all if "workload.bytes" in step.metrics]
    moved_bytes_per_s = fmean(moved) if len(moved) == len(of_all) else None
    limit = _limit(comparison.verdict, len(everyone) / len(fewer), moved_bytes_per_s, link_bytes_per_s)
    return FleetDrivers(
        of_all[0].level, everyone, fewer, limit, moved_bytes_per_s, link_bytes_per_s,
        verdict=comparison.verdict, levels=comparison.levels,
    )  # fmt: skip


def _limit(verdict: Verdict, more: float, moved: float | None, link: float | None) -> DriversLimit:
    """more: how many times as many drivers all of them are, hence the ratio where drivers are the limit."""
    if verdict.high < 1 + ALIKE * (more - 1):
        return "link" if moved is not None and link is not None and moved >= FULL * link else "target"
    return "drivers" if verdict.decision == "better" else "not proven"
