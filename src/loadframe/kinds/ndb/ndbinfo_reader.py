"""ndbinfo of a private cluster: once a second, by a program of MySQL Cluster that stays connected as an API node."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance
from loadframe.kinds.exposed import Exposure, Reading
from loadframe.kinds.ndb.ndbinfo import SPECS, TABLES, Ceilings, Totals, blocks, read_block
from loadframe.kinds.ndb.nodes import PRIVATE, Management
from loadframe.kinds.ndb.programs import LOADED, NDBINFO
from loadframe.kinds.private_server import PrivateServer
from loadframe.model import CounterSpec

EVERY_S = 1
"""The program counts whole seconds."""
LOST = "parts_lost"
ALL_SPECS = (*SPECS, CounterSpec(LOST, f"target.{LOST}", cumulative=False))
CONNECTS_WITHIN_S = 15.0
MOST_BYTES = 32 << 20
"""That it may print between two readings: a block of two data nodes has 10 kB."""


class NdbinfoProgram(PrivateServer):
    """ndbinfo_select_all, and what it has printed. Its log is that."""

    package, name = LOADED, "the reader of ndbinfo"

    def __init__(self, lease: Lease, user: Privilege) -> None:
        super().__init__(lease, "ndbinfo", user, None)
        self._place = 0

    def start(self, management: Management, allowance: Allowance) -> None:
        """It needs a cluster that has started, and an API slot in it."""
        command = (self.required(NDBINFO), *PRIVATE, f"--ndb-connectstring={management.address}")
        self.launch((*command, "--loops=0", f"--delay={EVERY_S}", *TABLES), allowance, lambda: True)

    def printed(self) -> str:
        """Since the last call; where that is too much, its end."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            end = log.seek(0, 2)
            begin = max(self._place if self._place <= end else 0, end - MOST_BYTES)
            log.seek(begin)
            text = log.read(end - begin)
        self._place = end
        return text.decode("utf-8", errors="replace")


class NdbinfoExposure(Exposure):
    """What the program tells and, as its owner sees it, the data nodes that have ended."""

    def __init__(self, program: NdbinfoProgram, api: frozenset[int]) -> None:
        super().__init__()
        self._program = program
        self._api = api
        self._totals = Totals()
        self._ceilings = Ceilings()
        self._rest = ""
        self._seen: list[Reading] = []
        self._newest: dict[str, float] = {}
        self._told = False
        self._why_not = ""

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        return ALL_SPECS

    def saw(self, at_s: float, lost: int) -> None:
        """How many data nodes have ended, while the others go on."""
        self._seen.append(Reading(at_s, {LOST: float(lost)}))

    def begin(self, ceilings: Ceilings) -> None:
        """The program has been started again, with these settings in effect: what it had begun to print is not ended
        any more."""
        self._rest, self._newest, self._told = "", {}, False
        self._ceilings = ceilings

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        """It watches always. What happened between two loads is read for its counts alone."""
        self.readings()
        yield
        if (error := self._program.died()) is not None:
            self._why_not = error.fact

    def readings(self) -> list[Reading]:
        new, self._rest = blocks(self._rest + self._program.printed())
        read = (read_block(block, self._api, self._totals, self._ceilings) for block in new)
        told = [Reading(*reading) for reading in read if reading is not None]
        self._told = self._told or bool(told)
        both, self._seen = sorted((*told, *self._seen), key=lambda reading: reading.at_s), []
        for reading in both:
            self._newest.update(reading.counters)
        return both

    def now(self) -> dict[str, float]:
        """The newest of each. After a start the program takes seconds to connect."""
        deadline = time.monotonic() + CONNECTS_WITHIN_S
        self.readings()
        while not self._told and self._program.died() is None and time.monotonic() < deadline:
            time.sleep(EVERY_S / 10)
            self.readings()
        return dict(self._newest)

    def missing(self) -> tuple[str, ...]:
        if self._why_not:
            return (f"Counters of ndbinfo are missing where it could not be read: {self._why_not}.",)
        return () if self._told else ("ndbinfo told no counters: steps shorter than 2 s may have none.",)
