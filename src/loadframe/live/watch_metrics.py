"""What /metrics tells of a watch: what the lines of its last two days have told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loadframe.live.watch_view import WatchView
from loadframe.reporting.openmetrics import Sample
from loadframe.reporting.openmetrics_watch import Seen
from loadframe.system.files import Folder


@dataclass(frozen=True, slots=True)
class _Line:
    kind: str
    at_s: float
    data: Mapping[str, Any]


class WatchMetrics(WatchView):
    """Reads on where it was at each call. Not for several threads at once."""

    def __init__(self, storage: Folder, view_id: str) -> None:
        super().__init__(storage, view_id)
        self._seen = Seen()

    def samples(self) -> Iterator[Sample]:
        """Of what was read until now; what cannot be read is left out."""
        self.refresh()
        return self._seen.samples(self.id.partition("/")[2])

    def _take(self, line: Mapping[str, Any]) -> set[str]:
        kind, data = line["kind"], {name: value for name, value in line.items() if name not in ("kind", "at_s")}
        self._seen.take(_Line(kind, line["at_s"], data))
        return set()
