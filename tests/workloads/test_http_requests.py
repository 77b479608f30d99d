"""Requests that a study declares: sent as declared, as often as declared, and what is not right is an error."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from answering import Sent, Service, said, serving
from loadframe.errors import NotRecovered, StudyError, TargetError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, Request, SettingValue, Think
from loadframe.workloads import asking, registry
from loadframe.workloads.base import HasUsers, SendsRequests
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.http_driver import OUTCOMES
from loadframe.workloads.request_log import Requests

SECONDS = 0.5
server = pytest.mark.server

LIST = Request("list", "GET", "/items", weight=3)
ORDER = Request("order", "POST", "/orders", (("Content-Type", "application/json"),), '{"item": 7}')


def shop(sent: Sent) -> bytes:
    """A list that does not change, and orders."""
    if sent.method == "GET":
        return said(b"seven items")
    return said(b'{"order": %d}' % time.monotonic_ns(), "201 Created")


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(shop) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


def drive(
    endpoint: Endpoint,
    folder: Path,
    declared: Declared,
    level: float = 3,
    axis: str = "concurrency",
    seconds: float = SECONDS,
    **options: SettingValue,
) -> ProcessDriver:
    workload = registry.make("http", options, Allowance(US), axis=axis, declared=declared)
    workload.install(endpoint)
    workload.set_level(endpoint, level)
    driver = workload.start(endpoint, level, folder, seconds)
    assert isinstance(driver, ProcessDriver)
    try:
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


def outcomes(requests: Requests, operation: int | None = None) -> Counter[str]:
    of = requests.outcome if operation is None else requests.outcome[requests.operation == operation]
    return Counter(OUTCOMES[code] for code in of)


@server
@pytest.mark.parametrize("axis", ["concurrency", "rate"])
def test_requests_are_sent_as_declared_and_logged_by_their_names(service: Service, folder: Path, axis: str) -> None:
    level = {"concurrency": 3, "rate": 200}[axis]
    requests = drive(service.endpoint(), folder, Declared(request=(LIST, ORDER)), level, axis).requests()
    assert outcomes(requests) == {"done": len(requests)}
    orders = [sent for sent in service.sent if sent.method == "POST"]
    assert {(sent.path, sent.body, sent.headers["content-type"]) for sent in orders} == {
        ("/orders", b'{"item": 7}', "application/json")
    }
    assert {sent.headers["host"] for sent in service.sent} == {service.address}
    logged = np.bincount(requests.operation, minlength=2)
    assert abs(logged[1] - len(orders)) <= 3
    share = logged[1] / logged.sum()
    assert share == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / logged.sum()) ** 0.5)


def test_each_request_is_an_operation() -> None:
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(LIST, ORDER)))
    assert workload.operations == workload.judged == ("list", "order")
    assert registry.make("http", {}, Allowance(US)).operations == ("get",)


EXPECTED = {
    "201 is a right answer of a POST": (None, "done"),
    "it is the one that is expected": (201, "done"),
    "another one is expected": (200, "wrong status"),
}


@server
@pytest.mark.parametrize("case", EXPECTED)
def test_the_status_that_is_expected_is_right(service: Service, folder: Path, case: str) -> None:
    expect, outcome = EXPECTED[case]
    order = Request("order", "POST", "/orders", expect=expect)
    requests = drive(service.endpoint(), folder, Declared(request=(LIST, order))).requests()
    assert outcomes(requests, 1).keys() == {outcome}
    assert outcomes(requests, 0).keys() == {"done"}


@server
def test_a_page_that_is_another_one_under_load_is_an_error(service: Service, folder: Path) -> None:
    learnt = Counter[str]()

    def changing(sent: Sent) -> bytes:
        learnt[sent.path] += 1
        return said(b"seven items" if learnt[sent.path] <= 3 else b"eight items")

    service.answer = changing
    every = (replace(LIST, checked="bytes"), Request("status", "GET", "/status", checked="status"))
    requests = drive(service.endpoint(), folder, Declared(request=every), compared=1).requests()
    assert outcomes(requests, 0).keys() == {"wrong bytes"}
    assert outcomes(requests, 1).keys() == {"done"}


def page() -> bytes:
    """Another one each time."""
    return b'{"at": %d, "items": "%s"}' % (time.monotonic_ns(), b"x" * 80)


@server
@pytest.mark.parametrize(
    ("later", "outcome"),
    [(page, "done"), (lambda: b"no database", "wrong length"), (lambda: page() * 9, "wrong length")],
    ids=["another time", "shorter", "longer"],
)
def test_an_answer_that_differs_each_time_is_right_at_about_its_size(
    service: Service, folder: Path, later: Callable[[], bytes], outcome: str
) -> None:
    """Nothing is said of what is checked: a service that tells the time is loaded out of the box."""
    asked = Counter[str]()

    def changing(sent: Sent) -> bytes:
        asked[sent.path] += 1
        return said(page() if asked[sent.path] <= 3 or asked[sent.path] % 2 else later())

    service.answer = changing
    found = outcomes(drive(service.endpoint(), folder, Declared(request=(LIST,))).requests())
    assert found.keys() == {"done", outcome}
    assert outcome == "done" or abs(found["done"] - found[outcome]) <= 6


@server
def test_a_list_that_grows_from_step_to_step_is_right_and_one_that_shrinks_to_nothing_is_not(service: Service) -> None:
    now = {"size": 100}
    service.answer = lambda sent: said(b"x" * now["size"])
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(LIST,)))
    workload.install(service.endpoint())
    for now["size"] in (400, 1600, 900):
        workload.set_level(service.endpoint(), 1)
    now["size"] = 30
    with pytest.raises(TargetError, match="with 30 bytes; it had 100 or more before") as caught:
        workload.set_level(service.endpoint(), 1)
    assert 'checked = "status"' in caught.value.remedy


WORDS = [{"fails": '"error"'}, {"contains": '"items"'}, {"contains": "é"}]


@server
@pytest.mark.parametrize("words", WORDS, ids=str)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_error_that_is_answered_with_200_is_known_by_its_words(
    service: Service, folder: Path, words: dict[str, str], method: str
) -> None:
    """Of a GET also before the load, where it would be learnt as right."""
    right, wrong = '{"items": "é"}'.encode(), b'{"error": "e\0"}'
    asked = Counter[str]()

    def failing(sent: Sent) -> bytes:
        asked[sent.path] += 1
        return said(wrong if asked[sent.path] > 3 and asked[sent.path] % 2 else right)

    service.answer = failing
    declared = Declared(request=(replace(Request("one", method, "/one"), **words),))  # type: ignore[arg-type]
    found = outcomes(drive(service.endpoint(), folder, declared).requests())
    assert found.keys() == {"done", "wrong words"} and abs(found["done"] - found["wrong words"]) <= 6
    service.answer = lambda sent: said(wrong)
    if method == "GET":
        with pytest.raises(TargetError, match=r"/one with a body that (has|does not have)"):
            registry.make("http", {}, Allowance(US), declared=declared).install(service.endpoint())


@server
def test_a_get_may_expect_another_status(service: Service, folder: Path) -> None:
    service.answer = lambda sent: said(b"", "404 Not Found")
    requests = drive(service.endpoint(), folder, Declared(request=(Request("x", "GET", "/", expect=404),))).requests()
    assert outcomes(requests).keys() == {"done"}


@server
def test_paths_of_the_options_are_asked_for(service: Service, folder: Path) -> None:
    requests = drive(service.endpoint(), folder, Declared(), paths="/a /b?c=1").requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert {sent.path for sent in service.sent} >= {"/a", "/b?c=1"}
    assert "/" not in {sent.path for sent in service.sent[4:]}


@server
def test_a_body_may_come_from_a_file(service: Service, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(bytes(range(256)))
    order = Request("order", "PUT", "/orders", body_file=str(tmp_path / "body"))
    drive(service.endpoint(), folder, Declared(request=(order,))).requests()
    assert {sent.body for sent in service.sent if sent.method == "PUT"} == {bytes(range(256))}


@server
def test_connections_are_closed_where_they_should(service: Service, folder: Path) -> None:
    requests = drive(service.endpoint(), folder, Declared(request=(ORDER,)), keep_alive=False).requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert service.connections == pytest.approx(len(requests), abs=6)


# --- whose data ---


@server
def test_data_of_others_are_changed_only_where_the_study_says_so(service: Service, folder: Path) -> None:
    running = service.endpoint("url", attached=True)
    with pytest.raises(StudyError, match="'order' is a POST") as caught:
        drive(running, folder, Declared(request=(LIST, ORDER)))
    assert "workload.options.writes = true" in caught.value.remedy
    assert "POST" not in {sent.method for sent in service.sent}
    requests = drive(running, folder, Declared(request=(LIST, ORDER)), writes=True).requests()
    assert outcomes(requests, 1).keys() == {"done"}


@server
def test_a_server_with_our_objects_is_asked_for_nothing_else(web_server: Endpoint) -> None:
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(LIST,)))
    assert workload.target_kinds == {"service", "url"}
    with pytest.raises(StudyError, match="serves the objects that Loadframe makes"):
        workload.install(web_server)


# --- users who think ---


@server
@pytest.mark.parametrize("spread", ["fixed", "exponential"])
def test_users_think_between_an_answer_and_the_next_request(service: Service, folder: Path, spread: str) -> None:
    think_s, users = 0.05, 8
    declared = Declared(request=(LIST,), think_time=Think(think_s, spread))  # type: ignore[arg-type]
    requests = drive(service.endpoint(), folder, declared, users).requests()
    begun_s = requests.end_s - requests.latency_ms / 1000
    took_s = float(requests.latency_ms.mean()) / 1000
    expected = users * SECONDS / (think_s + took_s)
    assert len(requests) == pytest.approx(expected, abs=5 * expected**0.5), "N = X (R + Z)"
    assert np.ptp(begun_s[np.argsort(begun_s)][:users]) > think_s / 4, "they do not begin at one instant"


@pytest.mark.long
@server
def test_a_connection_that_was_closed_while_its_user_thought_is_no_error(folder: Path) -> None:
    with serving(shop, silent_s=1.2) as service:
        declared = Declared(request=(LIST,), think_time=Think(1.5, "fixed"))
        requests = drive(service.endpoint(), folder, declared, 2, seconds=3.5).requests()
    assert outcomes(requests) == {"done": len(requests)}
    assert len(requests) >= 3
    assert service.connections > 4, "connections were closed, and opened again"


@pytest.mark.long
@server
def test_a_server_that_does_not_answer_after_a_pause_is_an_error(service: Service, folder: Path) -> None:
    broken = time.monotonic() + 1.0

    def dying(sent: Sent) -> bytes:
        return said(b"seven items") if time.monotonic() < broken else b""

    service.answer = dying
    declared = Declared(request=(LIST,), think_time=Think(1.5, "fixed"))
    requests = drive(service.endpoint(), folder, declared, 2, seconds=3.5).requests()
    assert outcomes(requests)["no answer"] >= 1


def test_a_step_knows_how_long_its_users_think() -> None:
    for declared, think_s in ((Declared(), 0.0), (Declared(think_time=Think(0.5, "exponential")), 0.5)):
        workload = registry.make("http", {}, Allowance(US), declared=declared)
        assert isinstance(workload, HasUsers) and workload.think_s() == think_s


def test_what_is_not_checked_is_told() -> None:
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(LIST, ORDER)))
    assert isinstance(workload, SendsRequests)
    status, size = "Of the answers to order no more than the status was checked.", "the status and about the size"
    assert workload.unchecked("url") == f"{status} Of the answers to list no more than {size} were checked."
    known = Declared(request=(replace(LIST, contains="seven"), replace(ORDER, fails="error")))
    workload = registry.make("http", {}, Allowance(US), declared=known)
    assert isinstance(workload, SendsRequests) and workload.unchecked("url") == ""
    workload = registry.make("http", {}, Allowance(US))
    assert isinstance(workload, SendsRequests)
    assert "about its size" in workload.unchecked("service") and workload.unchecked("nginx") == ""


def test_at_a_rate_no_user_thinks() -> None:
    with pytest.raises(StudyError, match="think_time"):
        registry.make("http", {}, Allowance(US), axis="rate", declared=Declared(think_time=Think(1.0, "fixed")))


# --- what is refused ---

REFUSED: dict[str, tuple[dict[str, SettingValue], Declared, str]] = {
    "paths and requests": ({"paths": "/a"}, Declared(request=(LIST,)), "one of them is enough"),
    "no path": ({"paths": "/a b"}, Declared(), "must begin with /"),
    "no such file": ({}, Declared(request=(Request("x", "PUT", "/", body_file="/none"),)), "cannot be read"),
    "a file without an end": ({}, Declared(request=(Request("x", "PUT", "/", body_file="/dev/zero"),)), "more than"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_sent_is_refused_before_anything_is_started(case: str) -> None:
    options, declared, why = REFUSED[case]
    with pytest.raises(StudyError) as caught:
        workload = registry.make("http", options, Allowance(US), declared=declared)
        assert isinstance(workload, SendsRequests)
        workload.check_requests(running=False)
    assert why in caught.value.fact


@server
def test_a_page_that_is_not_there_is_said_with_what_to_expect(service: Service) -> None:
    service.answer = lambda sent: said(b"", "302 Found", "Location: /login")
    with pytest.raises(TargetError, match="answers /items with status 302") as caught:
        registry.make("http", {}, Allowance(US), declared=Declared(request=(LIST,))).install(service.endpoint())
    assert "or say expect = 302 ([[workload.request]])" in caught.value.remedy


@server
def test_a_page_that_changes_must_be_checked_for_less(service: Service) -> None:
    service.answer = lambda sent: said(b"%d" % time.monotonic_ns())
    workload = registry.make("http", {"checked": "bytes"}, Allowance(US), declared=Declared(request=(LIST,)))
    with pytest.raises(TargetError, match="different bytes each time") as caught:
        workload.install(service.endpoint())
    assert 'checked = "length"' in caught.value.remedy


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "429 Too Many Requests"])
def test_a_server_that_has_used_something_up_is_waited_for_and_that_is_told(status: str) -> None:
    """A relay that is out of ports answers 502 until those of the step before are free again."""
    refused = 0

    def tired(_: Sent) -> bytes:
        nonlocal refused
        refused -= 1
        return said(b"", status) if refused >= 0 else said(b"seven items")

    with serving(tired) as service:
        workload = registry.make("http", {}, Allowance(US), axis="concurrency")
        workload.install(service.endpoint())
        assert isinstance(workload, SendsRequests) and workload.notes() == ()
        refused = 2
        workload.set_level(service.endpoint(), 1)
        (note,) = workload.notes()
        assert re.match("Before a step the server refused for [0-9.]+ s, and then answered: what the step", note)


def test_a_server_that_goes_on_to_refuse_is_told_with_how_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "RECOVERS_WITHIN_S", 0.4)
    broken = False

    def refuses(_: Sent) -> bytes:
        return said(b"", "503 Service Unavailable") if broken else said(b"seven items")

    with serving(refuses) as service:
        workload = registry.make("http", {}, Allowance(US), axis="concurrency")
        workload.install(service.endpoint())
        broken = True
        with pytest.raises(NotRecovered, match=r"status 503, and did so for .* after the load had ended") as caught:
            workload.set_level(service.endpoint(), 1)
    error = caught.value
    assert (error.path, error.status) == ("/", 503) and 0.2 < error.waited_s < 5
    assert "Restart it" in error.remedy


def test_a_server_that_takes_no_connection_any_more_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "RECOVERS_WITHIN_S", 0.4)
    workload = registry.make("http", {}, Allowance(US), axis="concurrency")
    with serving(lambda _: said(b"seven items")) as service:
        endpoint = service.endpoint()
        workload.install(endpoint)
    with pytest.raises(NotRecovered, match=r"does not answer /\S* \(Connection refused\), and did not for ") as caught:
        workload.set_level(endpoint, 1)
    error = caught.value
    assert (error.path, error.status, error.why) == ("/", 0, "Connection refused") and 0.2 < error.waited_s < 5
    assert "whether it has ended" in error.remedy
    with pytest.raises(TargetError, match="does not answer /") as first:
        registry.make("http", {}, Allowance(US), axis="concurrency").install(endpoint)
    assert not isinstance(first.value, NotRecovered), "it has never answered"


def test_a_server_that_starts_again_is_waited_for_and_that_is_told() -> None:
    workload = registry.make("http", {}, Allowance(US), axis="concurrency")
    with serving(lambda _: said(b"seven items")) as service:
        endpoint = service.endpoint()
        workload.install(endpoint)
    with ExitStack() as stack:
        again = serving(lambda _: said(b"seven items"), port=int(endpoint.address.rpartition(":")[2]))
        later = threading.Timer(0.3, lambda: stack.enter_context(again))
        later.start()
        workload.set_level(endpoint, 1)
        later.join()
        assert isinstance(workload, SendsRequests)
        (note,) = workload.notes()
    assert "or it was started again" in note


def test_a_server_that_refuses_from_the_start_is_not_waited_for() -> None:
    with serving(lambda _: said(b"", "503 Service Unavailable")) as service:
        workload = registry.make("http", {}, Allowance(US), axis="concurrency")
        with pytest.raises(TargetError, match="with status 503"):
            workload.install(service.endpoint())
        assert len(service.sent) == 2


def test_a_server_that_fails_is_not_waited_for() -> None:
    broken = False

    def fails(_: Sent) -> bytes:
        return said(b"", "500 Internal Server Error") if broken else said(b"seven items")

    with serving(fails) as service:
        workload = registry.make("http", {}, Allowance(US), axis="concurrency")
        workload.install(service.endpoint())
        broken = True
        with pytest.raises(TargetError, match="with status 500"):
            workload.set_level(service.endpoint(), 1)
