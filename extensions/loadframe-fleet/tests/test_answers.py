"""What comes of a question to the host of a target."""

from __future__ import annotations

import pytest

from loadframe.errors import FleetError, TargetError
from loadframe_fleet.transport import Arrived, checked


def test_a_worker_that_is_lost_meanwhile_has_a_remedy() -> None:
    """Its agent says so in its place, and knows of none."""
    with pytest.raises(FleetError, match="host 'a': the worker of its agent has gone") as lost:
        checked(Arrived("a", 1, 0.0, error="the worker of its agent has gone"))
    assert "See what became of that host" in str(lost.value.remedy)


def test_an_error_of_the_host_keeps_its_kind_and_its_remedy() -> None:
    with pytest.raises(TargetError, match="no port is free") as refused:
        checked(Arrived("a", 1, 0.0, error="no port is free", kind="TargetError", remedy="Free one."))
    assert refused.value.remedy == "Free one."
