"""JMeter: the samples of its result file are requests of ours."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import MissingTool, StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.workloads import registry
from loadframe.workloads.command_lines import LineError, Lines
from loadframe.workloads.own_program import OutputDriver
from loadframe_drivers.jmeter import JMeter, program, read_jtl

DATA = Path(__file__).parents[1] / "data/drivers"
CSV = (DATA / "recorded/jmeter-5.6.3.csv.jtl").read_bytes()


def read(data: bytes, *, cut_off: bool = False) -> Lines:
    return read_jtl(io.BytesIO(data), ["request"], cut_off=cut_off)


def test_a_result_file_has_its_samples() -> None:
    lines = read(CSV)
    assert len(lines.end_s) == CSV.count(b"/page") + CSV.count(b"/bad") > 50
    assert lines.names == ["request", "page", "bad"]
    assert {lines.names[one] for one, failed in zip(lines.operation, lines.failed, strict=True) if failed} == {"bad"}
    assert lines.errors == {"500 Internal Server Error": sum(lines.failed)}
    assert set(lines.moved_bytes) == {213, 232}


def test_a_sample_ends_when_it_has_taken_its_time_from_its_begin() -> None:
    first = read(CSV)
    assert (first.end_s[0], first.latency_ms[0]) == (pytest.approx(1795560604.678 + 0.315), 315)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b"timeStamp", b"time"), "no column timeStamp"),
        ((b"1795560604678,315", b"2026/11/24,315"), "whole milliseconds"),
        ((b"1795560604678,315", b"1795560604678,-315"), "whole milliseconds"),
        ((b"1795560604678,315", b"1795560604678,NaN"), "whole milliseconds"),
        ((b"1795560604678,315", b'1795560604678,"3'), "line|CSV"),
        ((CSV[: CSV.index(b"\n")], b"some words"), "no header"),
    ],
)
def test_a_result_file_that_is_none_is_refused(change: tuple[bytes, bytes], why: str) -> None:
    assert change[0] in CSV
    with pytest.raises(LineError, match=why):
        read(CSV.replace(*change, 1))


def test_the_end_may_be_missing_where_jmeter_was_killed() -> None:
    whole = len(read(CSV).end_s)
    assert whole // 2 - 2 < len(read(CSV[: len(CSV) // 2], cut_off=True).end_s) < whole


def test_a_size_that_cannot_be_is_as_large_as_can_be_told() -> None:
    assert max(read(CSV.replace(b",213,", b",99999999999999999999,", 1)).moved_bytes) == 2**62


@given(st.data())
def test_a_spoilt_result_file_is_refused_or_has_samples_that_can_be(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(CSV) - 1))
    spoilt = CSV[:at] + data.draw(st.binary(max_size=6)) + CSV[at + data.draw(st.integers(0, 60)) :]
    try:
        lines = read(spoilt, cut_off=data.draw(st.booleans()))
    except LineError:
        return
    latencies = np.array(lines.latency_ms)
    assert np.isfinite(latencies).all() and (latencies >= 0).all() and np.isfinite(np.array(lines.end_s)).all()


def test_the_plan_is_told_level_time_and_address_by_properties(tmp_path: Path) -> None:
    made = registry.make("jmeter", {"file": str(DATA / "plan.jmx"), "seed": 3}, Allowance(US), axis="users")
    assert isinstance(made, JMeter)
    command = made.command_line(Endpoint("url", "127.0.0.1:8099"), 12, tmp_path, 2.4)
    assert {"-Jusers=12", "-Jduration=3", "-Jhost=127.0.0.1", "-Jport=8099", "-Jseed=3"} <= set(command)
    with pytest.raises(StudyError, match="property of JMeter"):
        registry.make("jmeter", {"file": str(DATA / "plan.jmx")}, Allowance(US), axis="a=b")


@pytest.mark.skipif(
    program() is None, reason="Debian's JMeter is 2.13 with 50 further packages; JMeter 5 has no package"
)
@pytest.mark.server
def test_a_step_of_jmeter_has_its_samples(foreign_site: Endpoint, tmp_path: Path) -> None:
    driver = registry.make("jmeter", {"file": str(DATA / "plan.jmx")}, Allowance(US)).start(
        foreign_site, 2, tmp_path, 2.0
    )
    assert isinstance(driver, OutputDriver) and driver.wait(120)
    driver.kill()
    requests = driver.requests()
    assert len(requests) > 20 and requests.end_s[-1] - requests.end_s[0] > 1.0


@pytest.mark.skipif(program() is not None, reason="JMeter is there")
def test_without_jmeter_it_says_how_to_get_it(tmp_path: Path) -> None:
    made = registry.make("jmeter", {"file": str(DATA / "plan.jmx")}, Allowance(US))
    with pytest.raises(MissingTool, match="jmeter") as caught:
        made.start(Endpoint("url", "127.0.0.1:8099"), 1, tmp_path, 1.0)
    assert shutil.which("jmeter") is None and "JMETER_HOME" in caught.value.remedy
