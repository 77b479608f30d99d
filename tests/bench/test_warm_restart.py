"""What caches still have after a restart, where one of them does not come back: that is told, and the next is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from loadframe.errors import TargetError
from loadframe.experiments.side_by_side import try_restarts
from loadframe.model import Ending, Endpoint, WarmRestart
from loadframe.runs.folder import RunFolder

OBJECTS = 16


class Asking:
    """A workload that asks the cache of the bench for its objects; it fetches those that it lacks."""

    def __init__(self) -> None:
        self.cached = self.fetched = 0

    def objects_at(self, level: float) -> int:
        return OBJECTS

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        pass

    def warm(self, endpoint: Endpoint, level: float) -> None:
        self.fetched, self.cached = self.fetched + OBJECTS - self.cached, OBJECTS


class Caches:
    """A bench of caches: all keep half of their objects but those that do not come back after such an ending."""

    def __init__(self, never_back: set[tuple[str, Ending]]) -> None:
        self.study = Mock(levels=[1.0])
        self.workload = Asking()
        self.endpoint = Endpoint("cache", "127.0.0.1:80")
        self.kind = ""
        self.ended: list[tuple[str, Ending]] = []
        self._never_back = never_back

    def is_cache(self, name: str) -> bool:
        return True

    def use(self, name: str) -> None:
        self.kind = name
        if self.ended and self.ended[-1][0] == name and self.ended[-1] in self._never_back:
            raise TargetError("its index is broken.", remedy="Look at its log.")

    def end(self, how: Ending) -> None:
        self.ended.append((self.kind, how))
        self.workload.cached //= 2

    def counters(self) -> dict[str, float]:
        return {"fetches": float(self.workload.fetched)}


@pytest.fixture
def restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two caches ended, where so many do not come back: what was told, and what the run has kept of it."""
    monkeypatch.setattr("loadframe.experiments.side_by_side.time.sleep", lambda seconds: None)

    def make(*never_back: tuple[str, Ending]) -> tuple[list[str], list[WarmRestart]]:
        book = Mock(bench=Caches(set(never_back)))
        run = RunFolder.create(tmp_path, "caches")
        try_restarts(book, run, ["squid", "nginx"])
        return [call.args[0] for call in book.progress.say.call_args_list], run.warm_restarts()

    return make


def test_the_next_cache_is_ended_where_one_does_not_come_back(restarted: Any) -> None:
    told, kept = restarted(("squid", "a clean stop"))
    assert kept == [
        WarmRestart("squid", "squid", "a clean stop", 16, None, "its index is broken."),
        WarmRestart("nginx", "nginx", "a clean stop", 16, 8),
        WarmRestart("nginx", "nginx", "SIGKILL", 16, 8),
    ]
    assert told[0] == "What squid has after a clean stop is not known: its index is broken."
