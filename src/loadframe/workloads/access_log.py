"""access-log: the requests of an access log, sent again in an open loop by its own times, without bodies, headers and
sessions, which it does not have (targets: known by their address; axis: speed, a multiple of the recorded one)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from loadframe.errors import StudyError
from loadframe.workloads.arrivals import Schedule
from loadframe.workloads.asks import Ask
from loadframe.workloads.common import HIGHEST_RATE
from loadframe.workloads.http_driver import MOST_CONNECTIONS, Order, requirements
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.logged import Stretch, read_stretch
from loadframe.workloads.options import rules, switch, text, whole
from loadframe.workloads.recorded import Recorded, told

FASTEST = 1000


@dataclass(frozen=True)
class AccessLogOptions:
    file: str = text("", "path of the log, as it is or packed by gzip")
    minutes: int = whole(10, 1, 1440, "how much of the log is replayed; where a step is longer, from the begin again")
    skip_minutes: int = whole(0, 0, 525_600, "how much of its begin is left out")
    connections: int = whole(64, 1, MOST_CONNECTIONS, "number of client connections that serve the requests")
    keep_alive: bool = switch(True, "connections stay open; false: a new one for each request")
    writes: bool = switch(False, "methods that change data are sent too, without a body, which no log has")
    seed: int = whole(1, 0, 2**32 - 1, "where in their second requests begin, if the log has whole seconds")


class AccessLog(Recorded[AccessLogOptions]):
    kind = "access-log"
    axes = frozenset({"speed"})
    axis_unit = "times the recorded speed"
    operations: tuple[str, ...] = ("read", "write")
    judged = operations
    model = AccessLogOptions
    levels = (1, FASTEST)
    order: Order = "replay"

    def check_level(self, level: float) -> int:
        """The speed. StudyError also where requests would come faster than any driver sends them."""
        speed = super().check_level(level)
        if self.options.file and (rate := speed * len(self._stretch.numbers) / self._stretch.span_s) > HIGHEST_RATE:
            raise StudyError(
                f"At the level {speed} on the axis speed {rate:,.0f} requests a second would begin.",
                remedy=f"The most is {HIGHEST_RATE:,}: lower the level, which is a whole number.",
            )
        return speed

    def words_of(self, level: float) -> str:
        return f"{level:g} {self.axis_unit}"

    def clients(self, level: int) -> int:
        return self.options.connections

    def recalled(self) -> Sequence[Ask]:
        return self._recalled

    def schedule(self, level: int, duration_s: float) -> Schedule:
        return self._stretch.at_speed(level, duration_s)

    def unchecked(self, target_kind: str) -> str:
        return (
            "Of the answers to the log's requests no more than the status was checked: below 400 where it was so in "
            "the log, below 500 otherwise."
        )

    def notes(self) -> tuple[str, ...]:
        stretch, options = self._stretch, self.options
        rate = len(stretch.numbers) / stretch.span_s
        found = [
            f"access-log: {len(stretch.numbers):,} requests of {stretch.span_s:,.0f} s are replayed, {rate:,.3g}/s at "
            "speed 1, without headers and bodies, which the log does not have",
        ]
        if stretch.unread:
            found.append(f"access-log: {stretch.unread:,} of {stretch.lines:,} lines have no request that can be read")
        found += [f"access-log: {each}" for each in told(stretch.left_out)]
        if stretch.cut:
            found.append(f"access-log: the stretch ends before {options.minutes} minutes, at {stretch.cut}")
        return tuple(found)

    @cached_property
    def _stretch(self) -> Stretch:
        options = self.options
        return read_stretch(self.file, 60.0 * options.skip_minutes, 60.0 * options.minutes, options.seed, self.not_sent)

    @cached_property
    def _recalled(self) -> tuple[Ask, ...]:
        return tuple(
            Ask(method, path, operation=method not in ("GET", "OPTIONS"), highest=399 if status < 400 else 499)
            for method, path, status in self._stretch.distinct
        )


KIND = KindOfWorkload(
    AccessLog.kind,
    AccessLog,
    rules(AccessLogOptions),
    requirements,
    tables=frozenset({"login"}),
    required=("file",),
)
