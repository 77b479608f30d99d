"""What a run over a fleet leaves in its folder besides: a recording of each host, a line for each step, also for one
that is void, whether fewer drivers would have done, what each link carries; of trials side by side every task, and how
alike the hosts are."""

from __future__ import annotations

from loadframe.model.fleet import FleetLink
from loadframe.model.fleet_hosts import FleetHosts
from loadframe.model.fleet_step import FleetDrivers, FleetStep
from loadframe.model.fleet_trials import FleetAttempt
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import decode

STEPS, DRIVERS, LINKS = "fleet.jsonl", "fleet-drivers.jsonl", "fleet-links.jsonl"
ATTEMPTS, HOSTS = "fleet-trials.jsonl", "fleet-hosts.jsonl"


def recording_of(host: str) -> str:
    """The name of a host's recording. host: its name in the fleet file."""
    return f"raw/host-{host}.lfr"


def add_step(run: RunFolder, step: FleetStep) -> None:
    """One more, on the disk when this returns. RunError."""
    run.append_line(STEPS, "fleet-step", step)


def steps(run: RunFolder) -> list[FleetStep]:
    """Those of a run, in order; none where it had no fleet. RunError for what is damaged."""
    return [decode("fleet-step", line, FleetStep, where=where) for line, where in run.lines(STEPS)]


def add_drivers(run: RunFolder, found: FleetDrivers) -> None:
    """All drivers beside fewer of them. RunError."""
    run.append_line(DRIVERS, "fleet-drivers", found)


def drivers(run: RunFolder) -> FleetDrivers | None:
    """The last such comparison; None where there was none. RunError."""
    found = [decode("fleet-drivers", line, FleetDrivers, where=where) for line, where in run.lines(DRIVERS)]
    return found[-1] if found else None


def add_link(run: RunFolder, link: FleetLink) -> None:
    """One more link that was measured. RunError."""
    run.append_line(LINKS, "fleet-link", link)


def links(run: RunFolder) -> list[FleetLink]:
    """Those of a run, in the order in which they were measured. RunError for what is damaged."""
    return [decode("fleet-link", line, FleetLink, where=where) for line, where in run.lines(LINKS)]


def add_attempt(run: RunFolder, attempt: FleetAttempt) -> None:
    """One more task that has ended on a host, also one that was lost. RunError."""
    run.append_line(ATTEMPTS, "fleet-trial", attempt)


def attempts(run: RunFolder) -> list[FleetAttempt]:
    """All of a run, in the order in which they ended. RunError for what is damaged."""
    return [decode("fleet-trial", line, FleetAttempt, where=where) for line, where in run.lines(ATTEMPTS)]


def add_hosts(run: RunFolder, found: FleetHosts) -> None:
    """What the hosts serve beside one another. RunError."""
    run.append_line(HOSTS, "fleet-hosts", found)


def hosts(run: RunFolder) -> FleetHosts | None:
    """The last such comparison; None where there was none. RunError."""
    found = [decode("fleet-hosts", line, FleetHosts, where=where) for line, where in run.lines(HOSTS)]
    return found[-1] if found else None
