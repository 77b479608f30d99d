"""A recorded session is walked through by each user, in its order and with its pauses; its secrets are not sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from answering import Sent, Service, said, serving
from loadframe.errors import StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, Login, Request, SettingValue
from loadframe.workloads import registry
from loadframe.workloads.base import HasUsers, SendsRequests, Workload
from loadframe.workloads.driving import ProcessDriver

pytestmark = pytest.mark.extension("loadframe_drivers")
server = pytest.mark.server
SHOP = "https://shop.example"


def entry(path: str, at_s: float, method: str = "GET", origin: str = SHOP, **others: Any) -> dict[str, Any]:
    """An answer after 10 ms."""
    headers = {":authority": "shop.example", "Host": "shop.example", "Accept": "*/*", "Cookie": "s=s3cret"}
    request = {
        "method": method,
        "url": origin + path,
        "headers": [{"name": name, "value": value} for name, value in {**headers, **others.pop("headers", {})}.items()],
        **others.pop("request", {}),
    }
    at = f"2026-11-24T12:{int(at_s) // 60:02d}:{at_s % 60:06.3f}Z"
    return {"startedDateTime": at, "time": 10, "request": request, "response": {"status": 200}, **others}


PAGES = [
    entry("/", 0.0),
    entry("/style.css", 0.02),
    entry("/pixel", 0.03, origin="https://ads.example"),
    entry("/items?page=2", 1.03),
    entry("/items?page=3", 1.05),
    entry("/order", 1.07, "POST", request={"postData": {"mimeType": "text/plain", "text": "7 items"}}),
]


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(lambda sent: said(b"hello")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


def made(folder: Path, *entries: Any, axis: str = "sessions", **options: SettingValue) -> Workload:
    session = folder.parent / "shop.har"
    session.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return registry.make("har", {"file": str(session), **options}, Allowance(US), axis=axis)


def drive(workload: Workload, endpoint: Endpoint, folder: Path, level: int, seconds: float = 0.5) -> ProcessDriver:
    workload.install(endpoint)
    service_level = workload.check_level(level)
    workload.set_level(endpoint, service_level)
    driver = workload.start(endpoint, level, folder, seconds)
    assert isinstance(driver, ProcessDriver)
    try:
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


def by_connection(service: Service) -> dict[int, list[Sent]]:
    found: dict[int, list[Sent]] = {}
    for sent in service.sent:
        found.setdefault(sent.connection, []).append(sent)
    return {number: sent for number, sent in found.items() if len(sent) > 3}


@server
def test_each_user_sends_the_requests_in_their_order(service: Service, folder: Path) -> None:
    workload = made(folder, *PAGES, think="none")
    requests = drive(workload, service.endpoint(), folder, 3).requests()
    assert not requests.outcome.any()
    order = ["/", "/style.css", "/items?page=2", "/items?page=3"]
    users = by_connection(service)
    assert len(users) == 3
    for sent in users.values():
        begin = order.index(sent[0].path)
        assert [one.path for one in sent] == [order[(begin + n) % 4] for n in range(len(sent))]
    assert workload.operations == ("GET /items", "GET /", "GET /style.css")
    logged = np.bincount(requests.operation)
    assert logged[0] == pytest.approx(logged[1] + logged[2], abs=6)


@pytest.mark.long
@server
def test_users_pause_as_they_did(service: Service, folder: Path) -> None:
    workload = made(folder, *PAGES)
    assert isinstance(workload, HasUsers)
    assert workload.think_s() == pytest.approx(1.0 / 4, abs=0.01), "a second before one of four requests"
    requests = drive(workload, service.endpoint(), folder, 8, 2.5).requests()
    expected = 8 * 2.5 / (float(requests.latency_ms.mean()) / 1000 + workload.think_s())
    assert len(requests) == pytest.approx(expected, rel=0.4), "N = X (R + Z)"


@server
def test_at_a_rate_the_requests_are_drawn(service: Service, folder: Path) -> None:
    workload = made(folder, *PAGES, axis="rate")
    requests = drive(workload, service.endpoint(), folder, 200).requests()
    assert len(requests) == pytest.approx(100, abs=10)
    assert isinstance(workload, HasUsers) and workload.think_s() == 0


@server
def test_secrets_and_headers_of_the_connection_are_dropped_and_said(service: Service, folder: Path) -> None:
    workload = made(folder, *PAGES, entry("/api", 2.0, headers={"Authorization": "Bearer s3cret"}), think="none")
    drive(workload, service.endpoint(), folder, 1)
    replayed = [sent for sent in service.sent if "accept" in sent.headers]
    assert replayed
    for sent in replayed:
        assert sent.headers.keys() == {"host", "accept"}
        assert sent.headers["host"] == service.address
    assert isinstance(workload, SendsRequests)
    told = " ".join(workload.notes())
    assert "secrets were dropped: Authorization of 1 and Cookie of 5 requests" in told
    assert "1 request was left out: to another origin" in told
    assert "1 request was left out: POST, which changes data" in told
    assert not any(b"s3cret" in path.read_bytes() for path in folder.iterdir())


@server
def test_secrets_are_sent_where_the_study_says_so(service: Service, folder: Path) -> None:
    drive(made(folder, *PAGES, keep_cookies=True, think="none"), service.endpoint(), folder, 1)
    assert {sent.headers.get("cookie") for sent in service.sent if "accept" in sent.headers} == {"s=s3cret"}


@server
def test_bodies_are_sent_where_data_may_be_changed(service: Service, folder: Path) -> None:
    drive(made(folder, *PAGES, writes=True, think="none"), service.endpoint(), folder, 2)
    assert {(sent.path, sent.body) for sent in service.sent if sent.method == "POST"} == {("/order", b"7 items")}


@server
def test_another_origin_may_be_meant(service: Service, folder: Path) -> None:
    drive(made(folder, *PAGES, origin="https://ads.example"), service.endpoint(), folder, 1)
    assert {sent.path for sent in service.sent} == {"/pixel"}


def test_many_paths_share_an_operation(folder: Path) -> None:
    workload = made(folder, *(entry(f"/{n}", n / 100) for n in range(50)))
    assert len(workload.operations) == 31 and workload.operations[-1] == "others"


REFUSED: dict[str, tuple[list[Any], dict[str, SettingValue], str]] = {
    "no such file": ([], {"file": "/none"}, "cannot be used: No such file"),
    "no entry": ([], {}, "no request of HTTP with a time"),
    "another origin": (PAGES, {"origin": "https://other"}, "has no request to https://other"),
    "errors alone": ([entry("/", 0, response={"status": 500})], {}, "1 request was left out: the recorded answer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_session_that_cannot_be_sent_is_refused_before_anything_starts(folder: Path, case: str) -> None:
    entries, options, why = REFUSED[case]
    workload = made(folder, *entries, **options)
    assert isinstance(workload, SendsRequests)
    with pytest.raises(StudyError) as caught:
        workload.check_requests(running=False)
    assert why in caught.value.fact


@pytest.mark.parametrize("kind", ["har", "access-log"])
def test_a_study_names_what_is_replayed(kind: str) -> None:
    with pytest.raises(StudyError, match=r"workload\.options\.file is missing"):
        registry.make(kind, {"file": ""}, Allowance(US), declared=Declared())


def test_a_session_comes_from_one_place(folder: Path) -> None:
    login = Declared(login=Login((Request("login 1", "POST", "/login"),)))
    with pytest.raises(StudyError, match=r"keep_cookies and \[workload\.login\]"):
        registry.make("har", {"file": "shop.har", "keep_cookies": True}, Allowance(US), declared=login)
