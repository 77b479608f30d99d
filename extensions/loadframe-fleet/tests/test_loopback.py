"""A study whose target is this machine's own loopback is not loaded by hosts for which that is another server."""

from __future__ import annotations

import json
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station, paced

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]


@pytest.mark.long
@pytest.mark.parametrize("driver", ["one", "coordinator"])
def test_every_driver_loads_the_server_that_the_study_names(open_folder: Path, driver: str) -> None:
    loopback = "127.0.0.1"
    with (
        Network(["coordinator", "one"]) as lan,
        paced(0.02, loopback, lan.within("coordinator")) as port,
    ):
        station = Station("one", open_folder / "one", by=lan.within(driver))
        lab = Laboratory(open_folder, [station], loopback, port, lan.within("coordinator"))
        process = lab.begin("[2]", "500ms")
        out, said = process.communicate(timeout=90)
        lab.close()
    found = json.loads(out)
    if driver == "coordinator":
        assert process.returncode == 0, out + said
        return
    assert process.returncode == 1, out + said
    assert "the study loads 127.0.0.1, which on host one of the fleet is that host itself" in found["message"]
    assert "every driver reaches" in found["remedy"]
