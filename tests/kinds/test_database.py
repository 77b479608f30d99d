"""The connection to a database that is killed while it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from loadframe.errors import NotRecovered, TargetError
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.database import Answer, Control
from loadframe.model import SettingValue


class Killed(Control):
    """It has lost its connections, and its process ends a moment later."""

    server, lost, errors, garbled = "Toy", (ConnectionError,), ConnectionError, ()
    patience_s = 1.0

    def __init__(self) -> None:
        self.looks = 0
        super().__init__(self.ended)
        self._connection = object()

    def ended(self) -> TargetError | None:
        self.looks += 1
        return NotRecovered("Toy died (SIGKILL)", remedy="", died="SIGKILL") if self.looks > 3 else None

    def _ask(self, statement: str, values: Sequence[Any]) -> Answer:
        raise ConnectionRefusedError

    def variables(self, catalogue: Catalogue, names: Iterable[str]) -> dict[str, SettingValue]:
        return {}

    def connect(self, *, within_s: float) -> Any:
        raise ConnectionRefusedError

    def _is_lost(self, error: Exception) -> bool:
        return True

    def _is_late(self, error: Exception) -> bool:
        return False

    def _pids(self) -> Iterable[int]:
        return ()

    def let_go(self, connection: Any) -> None:
        assert connection is not None


def test_one_that_was_killed_and_has_not_ended_yet_is_told_as_dead() -> None:
    """Seen: "MariaDB refused SHOW GLOBAL STATUS", of a server that had been killed a moment before."""
    with pytest.raises(NotRecovered, match="died"):
        Killed().ask("SELECT 1")
