"""Locust: the user's locustfile is what makes the load, and each of its requests is in the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadframe.errors import StudyError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.base import TellsTimes
from loadframe.workloads.own_program import OutputDriver, OwnProgram

pytestmark = pytest.mark.extension("loadframe_drivers")
DRIVERS = Path(__file__).parents[1] / "data/drivers"
SOON_S = 60.0
QUITE = """
import time
from locust import User, task, events

class Own(User):
    @task
    def work(self):
        time.sleep(0.01)
        BODY
"""
SHAPE = """
class Shape(LoadTestShape):
    def tick(self):
        return 2, 100
"""
FIRE = (
    "events.request.fire(request_type='queue', name=f'job {NAME}', response_time=TIME, response_length=7, exception=E)"
)


def run(
    folder: Path, file: Path, axis: str = "users", level: int = 2, seconds: float = 1.0, startup_s: int = 40
) -> tuple[OutputDriver, OwnProgram]:
    """startup_s: all of it passes where it tells of no request."""
    options: dict[str, SettingValue] = {"file": str(file), "startup_s": startup_s}
    made = registry.make("locust", options, Allowance(US), axis=axis)
    assert isinstance(made, OwnProgram)
    driver = made.start(Endpoint("url", "127.0.0.1:8099"), level, folder, seconds)
    assert driver.wait(SOON_S)
    driver.kill()
    return driver, made


def locustfile(folder: Path, name: str = "1", time: str = "9.0", error: str = "None", body: str = "") -> Path:
    path = folder / "locustfile.py"
    fire = FIRE.replace("{NAME}", "{" + name + "}").replace("TIME", time).replace("E)", error + ")")
    path.write_text(QUITE.replace("BODY", body or fire))
    return path


@pytest.mark.long
def test_requests_of_any_protocol_are_those_that_it_fires(tmp_path: Path) -> None:
    driver, made = run(tmp_path, locustfile(tmp_path))
    requests = driver.requests()
    assert made.operations == ("request", "queue job 1")
    assert len(requests) > 1
    assert set(requests.operation.tolist()) == {1}
    assert np.all(requests.latency_ms == np.float32(9.0))
    assert driver.moved_bytes(0, 1e12) == 7 * len(requests)


@pytest.mark.long
def test_names_without_an_end_are_taken_together(tmp_path: Path) -> None:
    fire = FIRE.replace("NAME", "number").replace("TIME", "9.0").replace("E)", "None)")
    driver, made = run(tmp_path, locustfile(tmp_path, body=f"for number in range(70): {fire}"))
    assert len(driver.requests()) >= 70
    assert len(made.operations) == 1 + 64 and made.operations[-1] == "others"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"time": "-1.0"}, "latency_ms is -1; it must be from 0 to 3.6e[+]06"),
        ({"time": "float('nan')"}, "not JSON"),
        ({"error": "ValueError('sold out')"}, "All .* requests of the driver locust failed: sold out"),
        ({"body": "raise KeyError('price')"}, "reported no request"),
        ({"body": "this is no Python"}, "failed: process .* ended with 1"),
    ],
)
def test_a_locustfile_that_does_not_work_is_told_in_words(change: dict[str, str], why: str, tmp_path: Path) -> None:
    driver, _ = run(tmp_path, locustfile(tmp_path, **change), startup_s=10)
    with pytest.raises(WorkloadError, match=why) as caught:
        driver.requests()
    assert caught.value.remedy
    if change.get("body"):
        assert "price" in caught.value.details or "SyntaxError" in caught.value.details


@pytest.mark.long
def test_a_shape_of_its_own_is_the_axis_and_no_users_beside_it(tmp_path: Path) -> None:
    driver, _ = run(tmp_path, DRIVERS / "shapefile.py")
    with pytest.raises(WorkloadError) as caught:
        driver.requests()
    assert "give load.axis another name than users" in caught.value.details
    driver, _ = run(tmp_path, locustfile(tmp_path), axis="size")
    with pytest.raises(WorkloadError) as caught:
        driver.requests()
    assert "no LoadTestShape" in caught.value.details


@pytest.mark.parametrize("name", ["", "no-such-file.py", "~nosuchuser/x", "a\0b"])
def test_a_study_names_a_locustfile_that_is_there(name: str) -> None:
    with pytest.raises(StudyError, match=r"workload\.options\.file") as caught:
        registry.make("locust", {"file": name}, Allowance(US), declared=Declared())
    assert caught.value.remedy


WAITING = """
class Tasks(TaskSet):
    wait_time = between(1, 2)

    @task
    def work(self):
        pass

class Other(User):
    tasks = [Tasks]
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "axis", "judged"),
    [
        (QUITE, "users", True),
        (QUITE.replace("    @task", "    wait_time = constant(0.001)\n\n    @task", 1), "users", False),
        (QUITE + WAITING, "users", False),
        (QUITE.replace("Own(User)", "Own(HttpUser)"), "users", False),  # locust's own clients know their unit
        (QUITE, "size", False),
    ],
)
def test_times_are_judged_where_users_ask_all_the_time_and_the_file_tells_the_times(
    text: str, axis: str, judged: bool, tmp_path: Path
) -> None:
    file = locustfile(tmp_path)
    imports = (
        "import time\nfrom locust import HttpUser, LoadTestShape, TaskSet, User, between, constant, events, task\n"
    )
    file.write_text(
        imports + text.replace("BODY", FIRE.replace("{NAME}", "{1}").replace("TIME", "9.0").replace("E)", "None)"))
    )
    if axis != "users":
        file.write_text(file.read_text() + SHAPE)
    driver, made = run(tmp_path, file, axis=axis)
    assert len(driver.requests()) > 0
    assert isinstance(made, TellsTimes)
    assert made.users(2) == (2 if judged else None)
