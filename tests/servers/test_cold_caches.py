"""The warm-up of a real server whose buffer pool is empty is found in what its requests say.

Its disk is held back (a cage), else today's disks fill a small pool before anything can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from loadframe.analysis.window import Summary, summarise
from loadframe.cages import groups
from loadframe.cages.cage import Cage
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.mysql.kind import MariadbTarget
from loadframe.model import TargetState
from loadframe.workloads import registry
from loadframe.workloads.base import Workload

READS_PER_S = 1000
ROWS = 60_000
"""Of 900 bytes: some 4,000 pages, in four tables of 15 MB, half of a pool of 128 MiB."""
STEP_S = 5.0
FLOOR_S = 0.5

pytestmark = [
    pytest.mark.server,
    pytest.mark.measures,
    pytest.mark.skipif(groups.available()["io"] is None, reason="this machine grants no control group for I/O rates"),
]


@dataclass
class Server:
    """A MariaDB in a cage, and a workload of nothing but reads by key."""

    target: MariadbTarget
    cage: Cage
    workload: Workload

    def restart(self) -> None:
        """With an empty pool."""
        self.cage.set({})
        self.target.stop()
        self.target.start(STATE)
        self.cage.set({"io.riops": READS_PER_S})

    def step(self, folder: Path) -> tuple[NDArray[np.float64], Summary]:
        """When each request ended, and what they say together."""
        folder.mkdir()
        driver = self.workload.start(self.target.endpoint(), 4, folder, STEP_S)
        try:
            assert driver.wait(60)
            requests = driver.requests()
        finally:
            driver.kill()
        return requests.end_s, summarise(
            requests.end_s, requests.latency_ms, requests.waiting_ms, requests.operation, requests.outcome,
            operations=self.workload.operations, judged=self.workload.judged,
            planned_s=STEP_S, floor_s=FLOOR_S, fixed_warmup_s=None,
        )  # fmt: skip


STATE = TargetState({"innodb_buffer_pool_size": 128 << 20, "innodb_flush_method": "O_DIRECT"})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    with Lease.acquire("a test of cold caches") as lease:
        cage = Cage.make("target", {"io.riops": 1_000_000}, lease=lease)
        target = MariadbTarget(lease=lease, resources=Resources(groups=cage.folders))
        try:
            target.create()
            target.start(STATE)
            options = {"tables": 4, "rows": ROWS // 4, "payload_bytes": 900, "update": 0, "transfer": 0}
            workload = registry.make("oltp", options, Allowance(US))
            workload.install(target.endpoint())
            workload.set_level(target.endpoint(), 4)
            yield Server(target, cage, workload)
        finally:
            target.destroy()


def test_the_time_in_which_a_cold_buffer_pool_fills_is_cut_off(server: Server, tmp_path: Path) -> None:
    server.restart()
    end_s, found = server.step(tmp_path / "cold")
    early = np.count_nonzero(end_s <= found.started_s + FLOOR_S) / FLOOR_S
    assert early < 0.5 * found.throughput, "the pool was cold, or there is nothing to find"
    assert found.window_start_s > found.started_s + FLOOR_S, "more than the least was cut off"
    assert found.batches[0] > 1.5 * early, "what is left begins with a warmer pool"
