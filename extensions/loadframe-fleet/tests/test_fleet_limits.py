"""The ledger of a fleet from what is in a run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from loadframe.experiments.writing import hosts_of
from loadframe.model import FleetLimit, Step
from loadframe.reporting import terminal
from loadframe.reporting.json_shapes import fleet_limits_json
from loadframe.reporting.limits_report import hosts_sentences, of_hosts
from loadframe.runs.folder import RunFolder
from loadframe_fleet.limits import limits_of_fleet, others_found
from loadframe_fleet.records import LINKS, STEPS, FleetLink, FleetStep, LinkUse

GIB = 2.0**30
LEVELS = (2.0, 4.0, 8.0)


def of_a_host(busy: float, used: float) -> dict[str, float]:
    return {
        "system.cpu.busy_cores": busy, "system.cpu.count": 4.0,
        "system.memory.used": used, "system.memory.limit": 16 * GIB,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, make_step: Callable[..., Step]) -> RunFolder:
    """Two drivers of a target that needs half a CPU for each client, a link to each that carries 10 MB/s; a void step
    and one of a proof, which are of no curve."""
    run = RunFolder.create(tmp_path, "fleet")
    for level in LEVELS:
        step = make_step(level, 100.0)
        run.append_line("steps.jsonl", "step", step)
        add(run, f"step-{step.number:05d}", level, level * 0.5e6)
    proof = make_step(8.0, 100.0, purpose="proof")
    run.append_line("steps.jsonl", "step", proof)
    add(run, f"step-{proof.number:05d}", 8.0, 90e6)
    STEPS.add(run, FleetStep("step-09999", 8.0, 0.0, 1.0, void="agent-lost", void_host="a", void_fact="gone"))
    return run


def add(run: RunFolder, name: str, level: float, each: float) -> None:
    metrics = {"a": of_a_host(0.2, GIB), "b": of_a_host(0.3, GIB), "north": of_a_host(level / 2, 2 * GIB)}
    moved = {"a": each, "b": each}
    STEPS.add(run, FleetStep(name, level, 0.0, 1.0, metrics=metrics, target="north", moved_bytes_per_s=moved))


def carry(run: RunFolder, rates: Mapping[str, float], cpu: float = 0.3) -> None:
    for driver, rate in rates.items():
        LINKS.add(run, FleetLink(driver, "north", back_bytes_per_s=rate, back_cpu=cpu))


def by_place(found: tuple[FleetLimit, ...]) -> dict[tuple[str, str, str], FleetLimit]:
    return {(each.host, each.driver, each.limit.id): each for each in found}


def test_the_cpus_and_the_memory_of_each_host_are_its_own(run: RunFolder) -> None:
    found = by_place(limits_of_fleet(run))
    assert found.keys() == {
        (host, "", name) for host in ("a", "b", "north") for name in ("cpu.saturated", "system.memory")
    }
    cpus = found["north", "", "cpu.saturated"].limit
    assert (cpus.use, cpus.ceiling, cpus.status) == (4.0, 4.0, "reached")
    assert cpus.exhausted_at is not None and cpus.exhausted_at.low <= 8.0 <= cpus.exhausted_at.high
    idle = found["b", "", "cpu.saturated"].limit
    assert idle.status == "free" and idle.use == 0.3 and idle.exhausted_at is None


def test_a_link_is_held_against_what_it_carries_by_itself(run: RunFolder) -> None:
    carry(run, {"a": 10e6, "b": 10e6})
    found = by_place(limits_of_fleet(run))
    one = found["north", "a", "network.link"].limit
    assert (one.use, one.ceiling, one.status) == (4e6, 10e6, "free"), "steps of a proof belong to no curve"
    assert one.exhausted_at is not None and one.exhausted_at.load == pytest.approx(20.0, rel=0.01)
    whole = found["north", "", "network.link"].limit
    assert whole.use == 8e6 and whole.exhausted_at is not None
    assert whole.exhausted_at.load == pytest.approx(10.0, rel=0.01)


def test_where_more_leaves_a_host_than_a_link_carries_that_link_is_not_the_host_s(run: RunFolder) -> None:
    carry(run, {"a": 5e6, "b": 5e6})
    found = by_place(limits_of_fleet(run))
    assert found["north", "a", "network.link"].limit.status == "free"
    assert ("north", "", "network.link") not in found


def test_what_encryption_has_set_is_no_rate_of_a_link(run: RunFolder) -> None:
    carry(run, {"a": 10e6, "b": 10e6}, cpu=0.95)
    assert {each.limit.id for each in limits_of_fleet(run)} == {"cpu.saturated", "system.memory"}


def test_what_is_said_of_them_names_the_host(run: RunFolder) -> None:
    carry(run, {"a": 10e6, "b": 10e6})
    found = limits_of_fleet(run)
    assert hosts_sentences(found) == ["Host north: the CPUs, 4 cores of 4 cores (100 %)."]
    lines = list(terminal.blocks(of_hosts(found).blocks, 200))
    assert "north" in lines[1] and "the CPUs" in lines[1], "the fullest first"
    assert any("the link to a" in line for line in lines)


def used(run: RunFolder, make_step: Callable[..., Step], links: Mapping[str, LinkUse]) -> None:
    """One more step of the curve, with what went through the links."""
    step = make_step(8.0, 100.0)
    run.append_line("steps.jsonl", "step", step)
    STEPS.add(run, FleetStep(f"step-{step.number:05d}", 8.0, 0.0, 1.0, target="north", links=links))


def test_other_traffic_on_a_link_is_a_row_and_a_finding_with_its_place(
    run: RunFolder, make_step: Callable[..., Step]
) -> None:
    carry(run, {"a": 10e6, "b": 10e6})
    used(run, make_step, {"a": LinkUse(4e6, 1.5e6, 0.2e6), "b": LinkUse(4e6, 1.0e6, 0.9e6), "north": LinkUse(8e6)})
    found = limits_of_fleet(run)
    one = by_place(found)["north", "a", "network.others"]
    assert (one.limit.use, one.limit.ceiling, one.error, one.limit.status) == (1.5e6, 10e6, 0.2e6, "near")
    assert by_place(found)["north", "", "network.others"].limit.status == "free"
    (finding,) = others_found(found)
    assert finding.title == "Traffic that is not of the load takes the link from north to a" and finding.host == "a"
    assert finding.evidence[0].value == 1.3e6, "what is unsure is not held against it"
    text = "\n".join(terminal.blocks(of_hosts(found).blocks, 200))
    assert "other traffic on the link to a" in text and "1.43 MiB/s +- 195 KiB/s" in text
    assert fleet_limits_json(found)[-1]["unseen"] == ""


def test_where_other_traffic_cannot_be_seen_it_is_said(run: RunFolder, make_step: Callable[..., Step]) -> None:
    carry(run, {"a": 10e6})
    used(run, make_step, {"a": LinkUse(why_not="the load does not leave the machine"), "b": LinkUse(1e6, 9e6, 1e5)})
    found = limits_of_fleet(run)
    assert not list(others_found(found))
    lines = list(terminal.blocks(of_hosts(found).blocks, 200))
    assert "  Host north: other traffic on the link to a cannot be seen: the load does not leave the machine." in lines
    assert any("to b cannot be seen: what the link carries by itself is not known" in line for line in lines)
    unseen = [each for each in fleet_limits_json(found) if each["unseen"]]
    assert [each["use"] for each in unseen] == [None, None], "it is not nothing"


def test_a_run_without_a_fleet_has_none(tmp_path: Path) -> None:
    assert limits_of_fleet(RunFolder.create(tmp_path, "alone")) == ()
    assert of_hosts(()).blocks == () and hosts_sentences(()) == []


def test_without_the_extension_a_run_says_what_its_part_about_hosts_needs(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = hosts_of(run)
    assert there.limits == limits_of_fleet(run) and not there.missing
    monkeypatch.setattr("loadframe.experiments.writing.registered", lambda *_: None)
    without = hosts_of(run)
    assert not without.limits and not without.others
    assert "needs the extension loadframe-fleet, which is not installed" in without.missing[0]
