"""What a run over a fleet leaves in its folder besides: a recording of each host, a line for each step, also for one
that is void, whether fewer drivers would have done, what each link carries; of trials side by side every task, and how
alike the hosts are."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from loadframe.model.fleet import FleetDrivers, FleetHosts, FleetLink, FleetStep
from loadframe.model.fleet_trials import FleetAttempt
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import decode

Record = TypeVar("Record")


def recording_of(host: str) -> str:
    """The name of a host's recording. host: its name in the fleet file."""
    return f"raw/host-{host}.lfr"


@dataclass(frozen=True, slots=True)
class Lines(Generic[Record]):
    """A file of a run with a record in each line, in the order in which they came; empty where the run had no fleet."""

    file: str
    schema: str
    record: type[Record]

    def add(self, run: RunFolder, found: Record) -> None:
        """One more, on the disk when this returns. RunError."""
        run.append_line(self.file, self.schema, found)

    def of(self, run: RunFolder) -> list[Record]:
        """All of a run. RunError for what is damaged."""
        return [decode(self.schema, line, self.record, where=where) for line, where in run.lines(self.file)]

    def last(self, run: RunFolder) -> Record | None:
        """The last one; None where there was none. RunError."""
        return next(reversed(self.of(run)), None)


STEPS = Lines("fleet.jsonl", "fleet-step", FleetStep)
DRIVERS = Lines("fleet-drivers.jsonl", "fleet-drivers", FleetDrivers)
"""All drivers beside fewer of them."""
LINKS = Lines("fleet-links.jsonl", "fleet-link", FleetLink)
ATTEMPTS = Lines("fleet-trials.jsonl", "fleet-trial", FleetAttempt)
"""Tasks that have ended on a host, also those that were lost."""
HOSTS = Lines("fleet-hosts.jsonl", "fleet-hosts", FleetHosts)
"""What the hosts serve beside one another."""
