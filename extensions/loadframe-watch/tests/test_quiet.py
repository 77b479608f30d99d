"""A farm that only breathes gives no alarm, also where chance is strange for an afternoon."""

from __future__ import annotations

from pathlib import Path

import pytest

from watch import breathing
from watch_farm import DAY_S, watching


@pytest.mark.long
def test_an_afternoon_of_fast_responses_is_no_change(tmp_path: Path) -> None:
    """The farm of benchmarks/watch.py that had given a false alarm on its fifth day."""
    farm, _ = breathing(9007)
    with watching(farm, tmp_path, 300.0) as watcher:
        while farm.passed_s < 5 * DAY_S:
            watcher.tick()
            farm.clocks.advance(300.0)
    assert watcher.alarms == []
