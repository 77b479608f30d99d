"""k6: each request that it measured is one of ours."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import MissingTool
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.workloads import registry
from loadframe.workloads.command_lines import LineError
from loadframe.workloads.own_program import OutputDriver
from loadframe_drivers.k6 import read_points

DATA = Path(__file__).parents[1] / "data/drivers"
RECORDED = (DATA / "recorded/k6-0.54.0.json").read_bytes()


def test_requests_are_the_points_with_a_duration() -> None:
    names = ["request"]
    lines = read_points(io.BytesIO(RECORDED), names)
    assert len(lines.end_s) == RECORDED.count(b'"metric":"http_req_duration","type":"Point"') > 5
    assert names == ["request", "GET page", "GET http://127.0.0.1:18234/bad"]
    failed = [names[operation] for operation, bad in zip(lines.operation, lines.failed, strict=True) if bad]
    assert set(failed) == {names[2]}
    assert lines.errors == {"status 500": len(failed)}
    assert lines.latency_ms[0] == 3.900994
    assert lines.end_s[0] == pytest.approx(1795560205.424597, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b'"value":3.900994', b'"value":-1'), "a request of -1 ms"),
        ((b'"value":3.900994', b'"value":NaN'), "no point of k6"),
        ((b'"value":3.900994', b'"value":"x"'), "no point of k6"),
        ((b'"time":"2026-11-24T22:43:25.424597168Z","value":3.9', b'"time":"yesterday","value":3.9'), "no point of k6"),
        ((b'"time":"2026-11-24T22:43:25.424597168Z","value":3.9', b'"value":3.9'), "no point of k6"),
        ((b'"tags":{', b'"tags":[{'), "no point of k6"),
    ],
)
def test_a_point_that_is_none_is_refused(change: tuple[bytes, bytes], why: str) -> None:
    at = RECORDED.index(b'"http_req_duration","type":"Point"')
    with pytest.raises(LineError, match=why):
        read_points(io.BytesIO(RECORDED[:at] + RECORDED[at:].replace(*change, 1)), ["request"])


@given(st.data())
def test_a_spoilt_output_is_refused_or_has_requests_that_can_be(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(RECORDED) - 1))
    spoilt = RECORDED[:at] + data.draw(st.binary(max_size=6)) + RECORDED[at + data.draw(st.integers(0, 60)) :]
    try:
        lines = read_points(io.BytesIO(spoilt), ["request"])
    except LineError:
        return
    latencies = np.array(lines.latency_ms)
    assert np.isfinite(latencies).all() and (latencies >= 0).all() and np.isfinite(np.array(lines.end_s)).all()


@pytest.mark.skipif(shutil.which("k6") is None, reason="no package has k6; it is built with Go")
@pytest.mark.server
def test_a_step_of_k6_has_its_requests(foreign_site: Endpoint, tmp_path: Path) -> None:
    made = registry.make("k6", {"file": str(DATA / "k6script.js")}, Allowance(US))
    driver = made.start(foreign_site, 2, tmp_path, 1.5)
    assert isinstance(driver, OutputDriver) and driver.wait(60)
    driver.kill()
    requests = driver.requests()
    assert len(requests) > 20
    assert 1.0 < requests.end_s[-1] - requests.end_s[0] < 3.0


@pytest.mark.skipif(shutil.which("k6") is not None, reason="k6 is there")
def test_without_k6_it_says_how_to_get_it(tmp_path: Path) -> None:
    made = registry.make("k6", {"file": str(DATA / "k6script.js")}, Allowance(US))
    with pytest.raises(MissingTool, match="k6") as caught:
        made.start(Endpoint("url", "127.0.0.1:8099"), 1, tmp_path, 1.0)
    assert "go install go.k6.io/k6" in caught.value.remedy
