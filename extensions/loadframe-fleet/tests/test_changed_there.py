"""A study that changes the machine of its target, over a fleet: the setting is that host's, made and undone by its
agent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import network
import pytest
from network import Network
from stations import Laboratory, Station, paced

SETTING = "net.core.somaxconn"
FILE = "/proc/sys/net/core/somaxconn"
"""Of a network namespace: each host of the test has its own."""
MORE = 5000
CHANGED = f"""
[host.settings]
"{SETTING}" = {MORE}
[remedies]
allow = ["target", "host"]
"""

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]


@pytest.fixture
def lan() -> Iterator[Network]:
    with Network(["coordinator", "north", "one"]) as made:
        yield made


@pytest.fixture
def lab(lan: Network, open_folder: Path) -> Iterator[Laboratory]:
    address = lan.address("north")
    north = Station("north", open_folder / "north", ["target"], address, lan.within("north"), may_change=["machine"])
    one = Station("one", open_folder / "one", by=lan.within("one"))
    with paced(0.02, address, lan.within("north")) as port:
        made = Laboratory(open_folder, [one, north], address, port, lan.within("coordinator"))
        yield made
        made.close()


def value(lan: Network, host: str) -> int:
    return int(subprocess.run([*lan.within(host), "cat", FILE], check=True, capture_output=True).stdout)


def mirrored(lab: Laboratory) -> list[tuple[str, str, object]]:
    """Of the last run's folder."""
    (*_, run) = sorted((lab.folder / "runs").iterdir())
    lines = [json.loads(line) for line in (run / "changes.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {each["setting"] for each in lines} == {SETTING}
    return [(each["status"], each["words"], each["read_back"]) for each in lines]


@pytest.mark.long
def test_it_is_changed_on_that_host_and_undone_there(lab: Laboratory, lan: Network) -> None:
    before = value(lan, "north")
    found = lab.measured("[4]", blocks=2, more=CHANGED)
    assert found["points"] and "drivers" not in found, "one host drives"
    assert mirrored(lab) == [
        ("intent", "host north", None),
        ("applied", "host north", MORE),
        ("reverted", "host north", before),
    ]
    assert value(lan, "north") == before
    lab.await_as_before()


@pytest.mark.measures
def test_it_is_undone_there_within_ten_seconds_where_the_coordinator_is_killed(lab: Laboratory, lan: Network) -> None:
    before, elsewhere = value(lan, "north"), [value(lan, name) for name in ("coordinator", "one")]
    process = lab.begin("[4]", window="60s", more=CHANGED)
    lab.await_load()
    assert value(lan, "north") == MORE
    assert [value(lan, name) for name in ("coordinator", "one")] == elsewhere, "of no other machine"
    journal = [path.read_text(encoding="utf-8") for path in (lab.folder / "north" / "state").glob("*/*.json")]
    assert any(SETTING in text for text in journal), "what was there is on that host's disk"
    lab.kill(process)
    assert value(lan, "north") == before
    assert mirrored(lab)[-1] == ("applied", "host north", MORE), "the copy ends with what the coordinator knew"


@pytest.mark.long
def test_it_is_undone_and_told_where_another_host_is_lost(lab: Laboratory, lan: Network) -> None:
    before = value(lan, "north")
    process = lab.begin("[4]", window="60s", more=CHANGED)
    lab.await_load()
    os.kill(lab.stations[0].agent, signal.SIGKILL)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "'one' is lost" in json.loads(out)["message"], out + said
    assert mirrored(lab)[-1] == ("reverted", "host north", before) and "Not reverted" not in said, said
    assert value(lan, "north") == before


@pytest.mark.long
def test_without_its_owner_s_word_nothing_is_changed(lab: Laboratory, lan: Network) -> None:
    before = value(lan, "north")
    lab.stations[1].may_change = ()
    process = lab.begin("[4]", more=CHANGED)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 1, out + said
    error = json.loads(out)
    assert "does not say that those of host 'north' may be changed" in error["message"]
    assert 'may_change = ["machine"]' in error["remedy"]
    assert value(lan, "north") == before and not (lab.folder / "runs").exists()
