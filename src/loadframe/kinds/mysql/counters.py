"""Counters from SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES of MariaDB 10.11 and MySQL 9.7, MySQL's performance
schema; its counters of the redo log came with 8.0.30."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.errors import TargetError
from loadframe.formats.plain_numbers import finite
from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.kinds.mysql.metrics import OF_CAPACITY
from loadframe.knowledge.rows import toml_rows
from loadframe.model import CounterSpec

if TYPE_CHECKING:
    from loadframe.kinds.mysql.attached import Control  # a watch, which reads counters in its own way, does not need it

_BOTH, _MARIADB, _MYSQL = (Path(__file__).with_name(f"{name}settings.toml") for name in ("", "mariadb_", "mysql_"))
MARIADB_CATALOGUE, MARIADB_TUNABLES = catalogue_in(_BOTH, _MARIADB), tunables_in(_MARIADB)
MYSQL_CATALOGUE, MYSQL_TUNABLES = catalogue_in(_BOTH, _MYSQL), tunables_in(_MYSQL)
RESERVED = frozenset(toml_rows(_BOTH)["reserved"])
PICOSECONDS = 1e12
WAITED = (
    "SELECT EVENT_NAME, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name"
    " WHERE EVENT_NAME IN ({})"
)
FILLED = "redo_fill"


@dataclass(frozen=True, slots=True)
class Counting:
    """The counters of one kind. redo: names in `status` of the redo log's used bytes and of its capacity. usable: the
    share of it that is used before pages have to be written. waits: by performance schema's names, in seconds."""

    kind: str
    status: tuple[CounterSpec, ...]
    variables: tuple[CounterSpec, ...]
    redo: tuple[str, ...]
    waits: tuple[CounterSpec, ...] = ()
    usable: float = 1.0

    @property
    def specs(self) -> tuple[CounterSpec, ...]:
        filled = CounterSpec(FILLED, f"{self.kind}.{FILLED}", cumulative=False)
        return (*self.status, *self.variables, *((filled,) if self.redo else ()), *self.waits)

    def read(self, control: Control) -> dict[str, float]:
        texts = control.pairs("SHOW GLOBAL STATUS", [spec.name for spec in self.status])
        texts |= control.pairs("SHOW GLOBAL VARIABLES", [spec.name for spec in self.variables])
        return self.counted(texts) | self._waited(control)

    def counted(self, texts: Mapping[str, str]) -> dict[str, float]:
        """Counters by CounterSpec.name, from the values of the two SHOW statements; without values that are not
        numbers."""
        numbers = {name: number for name, text in texts.items() if (number := finite(text)) is not None}
        age, most = (numbers.get(name, 0.0) for name in self.redo or ("", ""))
        return numbers | ({FILLED: age / (self.usable * most)} if most > 0 else {})

    def _waited(self, control: Control) -> dict[str, float]:
        """Empty where the performance schema is off, or closed to the account."""
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
    status, variables, waits = (
        tuple(replace(spec, name=name) for name, spec in counters_in(file, source, kind=kind).items())
        for source in ("status", "variable", "wait")
    )
    return Counting(kind, status, variables, redo, waits, usable)


_FILE = Path(__file__).with_name("metrics.txt")
MARIADB = counting(_FILE, "mariadb", ("Innodb_checkpoint_age", "Innodb_checkpoint_max_age"))
"""MariaDB 10.11 counts fsyncs of the redo log in Innodb_data_fsyncs (20 single-row commits raised it by 21)."""
MYSQL = counting(_FILE, "mysql", ("Innodb_redo_log_logical_size", "Innodb_redo_log_capacity_resized"), OF_CAPACITY)
"""Waits: those that are measured by default; seconds of all threads."""
