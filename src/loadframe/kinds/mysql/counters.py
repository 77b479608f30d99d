"""What a MariaDB and a MySQL are asked in the steps of a study and by the ledger, of a private server and of one that
runs already.

Names and meanings: SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES of MariaDB 10.11 and MySQL 9.7, MySQL's performance
schema; its counters of the redo log came with 8.0.30.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import TargetError
from loadframe.formats.plain_numbers import finite
from loadframe.kinds.catalogue import counters_in
from loadframe.kinds.mysql.metrics import OF_CAPACITY
from loadframe.model import CounterSpec

if TYPE_CHECKING:
    from loadframe.kinds.mysql.control import Control  # a watch, which asks in its own way, has no use for it

PICOSECONDS = 1e12
WAITED = (
    "SELECT EVENT_NAME, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name"
    " WHERE EVENT_NAME IN ({})"
)
FILLED = "redo_fill"


@dataclass(frozen=True, slots=True)
class Counting:
    """What a kind is asked. redo: of `status`, how much of the redo log is in use, and how large it may be: bytes;
    none where it has no such log. usable: the share of the latter that is used before pages have to be written. waits:
    seconds that threads have waited, by performance schema's names."""

    kind: str
    status: tuple[CounterSpec, ...]
    variables: tuple[CounterSpec, ...]
    redo: tuple[str, ...]
    waits: tuple[CounterSpec, ...] = ()
    usable: float = 1.0

    @property
    def specs(self) -> tuple[CounterSpec, ...]:
        """All of them, with what follows from others at one moment."""
        filled = CounterSpec(FILLED, f"{self.kind}.{FILLED}", cumulative=False)
        return (*self.status, *self.variables, *((filled,) if self.redo else ()), *self.waits)

    def read(self, control: Control) -> dict[str, float]:
        """Two SHOW statements on the kept connection, and one to the performance schema where it has something."""
        told = control.pairs("SHOW GLOBAL STATUS", [spec.name for spec in self.status])
        told |= control.pairs("SHOW GLOBAL VARIABLES", [spec.name for spec in self.variables])
        return self.counted(told) | self._waited(control)

    def counted(self, told: Mapping[str, str]) -> dict[str, float]:
        """What the two SHOW statements told, by CounterSpec.name; what is no number is left out."""
        found = {name: number for name, text in told.items() if (number := finite(text)) is not None}
        age, most = (found.get(name, 0.0) for name in self.redo or ("", ""))
        return found | ({FILLED: age / (self.usable * most)} if most > 0 else {})

    def _waited(self, control: Control) -> dict[str, float]:
        """Nothing where the performance schema is off, or closed to the account."""
        if not self.waits:
            return {}
        names = [spec.name for spec in self.waits]
        try:
            rows = control.ask(WAITED.format(", ".join(["%s"] * len(names))), names)
        except TargetError:  # a server that has died says so to the next SHOW statement
            return {}
        numbers = ((str(row[0]), finite(str(row[1]))) for row in rows if len(row) == 2 and row[0] in names)
        return {name: number / PICOSECONDS for name, number in numbers if number is not None}


def counting(file: Path, kind: str, redo: tuple[str, ...] = (), usable: float = 1.0) -> Counting:
    """By the table of metrics in a file."""
    status, variables, waits = (
        tuple(replace(spec, name=name) for name, spec in counters_in(file, source, kind).items())
        for source in ("status", "variable", "wait")
    )
    return Counting(kind, status, variables, redo, waits, usable)


_FILE = Path(__file__).with_name("metrics.txt")
MARIADB = counting(_FILE, "mariadb", ("Innodb_checkpoint_age", "Innodb_checkpoint_max_age"))
"""MariaDB 10.11 has no Innodb_os_log_fsyncs any more: fsyncs of the redo log count in Innodb_data_fsyncs (seen: 20
single-row commits raise it by 21)."""
MYSQL = counting(_FILE, "mysql", ("Innodb_redo_log_logical_size", "Innodb_redo_log_capacity_resized"), OF_CAPACITY)
"""Waits: those that are measured unless the server is told otherwise; seconds of all threads."""
