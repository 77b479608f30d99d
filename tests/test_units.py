"""Every metric is shown with its unit, and the names of OpenTelemetry that we claim to follow exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.metrics import container_metrics, process_metrics, system_metrics

from loadframe import metrics
from loadframe.metrics import IN_FRONT, METRICS, register
from loadframe.units import show, show_metric

UNITS = {"1/s", "share", "cores", "count", "bytes", "bytes/s", "ms", "s", "s/s", "Hz"}
OFFICIAL = {
    value
    for module in (container_metrics, process_metrics, system_metrics)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}


def test_every_metric_has_a_unit_that_can_be_shown() -> None:
    assert {metric.unit for metric in METRICS.values()} <= UNITS
    assert show_metric("system.cpu.frequency", 2.9e9) == "2.9 GHz"
    assert show_metric("system.cpu.steal", 0.125) == "12.5 %"
    assert show(1010 * 2.0**20, "bytes") == "1010 MiB"


def test_a_name_stands_for_one_metric() -> None:
    with pytest.raises(ValueError, match="throughput is registered twice"):
        register("throughput | 1/s | something else")
    assert METRICS["throughput"].what == "requests done per second"


_TABLE = Path(metrics.__file__).with_name("conventions.txt").read_text()
CONVENTIONS = dict(map(str.strip, line.split("|")) for line in _TABLE.splitlines() if line and not line.startswith("#"))


def convention(metric: str) -> str | None:
    component, _, rest = metric.partition(".")
    general = f"COMPONENT.{rest}" if component.startswith(("target", "driver", "shard", *IN_FRONT)) else metric
    return CONVENTIONS.get(general)


@pytest.mark.parametrize("ours", CONVENTIONS)
def test_the_conventions_have_the_names_that_we_map_to(ours: str) -> None:
    assert CONVENTIONS[ours].partition("{")[0] in OFFICIAL
    assert ours.replace("COMPONENT", "target") in METRICS


def test_a_metric_that_has_the_name_of_a_convention_is_that_metric() -> None:
    same = METRICS.keys() & OFFICIAL
    assert {name for name in same if (convention(name) or "").partition("{")[0] != name} == set()
    assert convention("driver.open_files") == "process.unix.file_descriptor.count"
    assert convention("shard3.open_files") == convention("driver.open_files")
    assert convention("mariadb.questions") is None
    assert all(re.fullmatch(r"[a-z_]+[0-9]*(\.[a-z_0-9]+)*", name) for name in METRICS)


def test_one_core_is_no_cores() -> None:
    assert [show(value, "cores") for value in (1.0, 2.0, 0.93)] == ["1 core", "2 cores", "0.93 cores"]
