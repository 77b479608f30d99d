"""Every published answer in tests/data/queueing.json, to the digits that were printed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from loadframe.analysis.queueing import convolution, mva

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "queueing.json").read_text())


def demands(case: dict[str, Any]) -> np.ndarray:
    return np.array(case["service_s"]) * np.array(case["visits"])


def agrees(value: Any, printed: Any, digits: int) -> bool:
    """Whether a value rounds to what was printed; half of the last digit either way."""
    return bool((np.abs(np.asarray(value) - np.asarray(printed)) <= 0.5000001 * 10.0**-digits).all())


def test_schweitzer_and_exact() -> None:
    case = ANSWERS["lazowska_117"]
    network = (case["demands_s"], case["population"], case["think_s"])
    near, exact = mva.schweitzer(*network), mva.exact(*network)
    assert agrees(near.throughput, case["schweitzer"]["throughput"], 4)
    assert agrees(near.response_s, case["schweitzer"]["response_s"], 2)
    assert agrees(near.queue, case["schweitzer"]["queue"], 4)
    assert agrees(exact.throughput, case["exact"]["throughput"], 5)
    assert agrees(exact.response_s, case["exact"]["response_s"], 3)


def test_think_time_and_visits() -> None:
    case = ANSWERS["jain_34_2"]
    found = mva.exact(demands(case), case["population"], case["think_s"])
    assert agrees(found.residence_s / case["visits"], case["response_per_visit_s"], 3)
    assert agrees(found.queue, case["queue"], 3)


def test_several_servers_and_a_delay() -> None:
    case = ANSWERS["bolch_8_4"]
    servers = [math.inf if count is None else count for count in case["servers"]]
    found = convolution.multi_server(demands(case), case["population"], 0.0, servers)
    # Printed from steps that were rounded on the way: the last digit may differ by one.
    assert np.abs(found.queue - case["queue"]).max() < 0.0011
    assert np.abs(found.throughput * np.array(case["visits"]) - case["station_throughput"]).max() < 0.0011


def test_four_single_servers() -> None:
    case = ANSWERS["bolch_8_3"]
    found = mva.exact(demands(case), case["population"])
    assert np.abs(found.utilization - case["utilization"]).max() < 0.0011
    assert agrees(found.throughput * np.array(case["visits"]), case["station_throughput"], 3)


def test_many_servers_do_not_lose_digits() -> None:
    case = ANSWERS["many_servers"]
    found = convolution.multi_server([case["service_s"]], case["population"], 0.0, [case["servers"]])
    assert agrees(found.throughput, case["throughput"], 4)
    assert agrees(found.response_s, case["response_s"], 4)
