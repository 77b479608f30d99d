"""What a run over a fleet adds to its folder: a recording per host, a line per step (also void ones), the check with
fewer drivers, the capacity of links; for trials side by side every task, and how equal the hosts are."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from loadframe.model.fleet import FleetDrivers, FleetHosts, FleetLink, FleetStep
from loadframe.model.fleet_trials import FleetAttempt
from loadframe.runs.folder import RunFolder

Record = TypeVar("Record")


def recording_of(host: str) -> str:
    """The name of a host's recording. host: its name in the fleet file."""
    return f"raw/host-{host}.lfr"


@dataclass(frozen=True, slots=True)
class Lines(Generic[Record]):
    """A file of a run with one record per line, in order; empty where the run had no fleet."""

    file: str
    schema: str
    record: type[Record]

    def add(self, run: RunFolder, record: Record) -> None:
        """Append a record, on the disk when this returns. RunError."""
        run.append_line(self.file, self.schema, record)

    def of(self, run: RunFolder) -> list[Record]:
        """All records of a run. RunError for damaged ones."""
        return run.records(self.file, self.schema, self.record)

    def last(self, run: RunFolder) -> Record | None:
        """The last record, or None. RunError."""
        return next(reversed(self.of(run)), None)


STEPS = Lines("fleet.jsonl", "fleet-step", FleetStep)
DRIVERS = Lines("fleet-drivers.jsonl", "fleet-drivers", FleetDrivers)
"""All drivers compared with fewer."""
LINKS = Lines("fleet-links.jsonl", "fleet-link", FleetLink)
ATTEMPTS = Lines("fleet-trials.jsonl", "fleet-trial", FleetAttempt)
"""Tasks that have ended on a host, or were lost."""
HOSTS = Lines("fleet-hosts.jsonl", "fleet-hosts", FleetHosts)
"""The hosts' throughputs, for comparison."""
