"""Each connection logs in once, before the load; the secret stays in Loadframe, the session is carried on."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from answering import Sent, Service, said, serving
from loadframe.errors import StudyError, TargetError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Declared, Endpoint, Login, Request
from loadframe.workloads import registry
from loadframe.workloads.driving import ProcessDriver

SECRET = 'pass&"word=%'
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
JSON = (("Content-Type", "application/json"),)
BY_FORM = Request("login 1", "POST", "/login", FORM, "user=me&password={ENV:SHOP_PASSWORD}")
BY_JSON = Request("login 1", "POST", "/login", JSON, '{"password": "{ENV:SHOP_PASSWORD}"}')
PRIVATE = Request("cart", "GET", "/cart")
server = pytest.mark.server


class Shop:
    """Its cart is for those who have logged in. accepts: what of a login is right."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.sessions: set[str] = set()
        self.logins = 0

    def __call__(self, sent: Sent) -> bytes:
        if sent.path == "/login":
            return self.login(sent)
        session = sent.headers.get("authorization", sent.headers.get("cookie", ""))
        return said(b"a book") if session in self.sessions else said(b"", "401 Unauthorized")

    def login(self, sent: Sent) -> bytes:
        self.logins += 1
        if "form" in sent.headers["content-type"]:
            given, number = parse_qs(sent.body.decode())["password"][0], next(self.numbers)
            self.sessions.add(f"theme=dark; session={number}")
            more = ("Location: /cart", "Set-Cookie: theme=dark; Path=/", f"Set-Cookie: session={number}; HttpOnly")
            more += ("Set-Cookie: old=; Max-Age=0",)
            return said(b"", "303 See Other", *more) if given == SECRET else said(b"", "403 Forbidden")
        given, number = json.loads(sent.body)["password"], next(self.numbers)
        self.sessions.add(f"Bearer t{number}")
        body = json.dumps({"data": {"token": f"t{number}"}}).encode()
        return said(body) if given == SECRET else said(b"", "403 Forbidden")


@pytest.fixture
def shop() -> Iterator[tuple[Shop, Service]]:
    made = Shop()
    with serving(made) as service:
        yield made, service


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


def drive(
    endpoint: Endpoint, folder: Path, declared: Declared, level: int = 4, look: Callable[[int], None] = lambda pid: None
) -> ProcessDriver:
    workload = registry.make("http", {}, Allowance(US), declared=declared)
    workload.install(endpoint)
    driver = workload.start(endpoint, level, folder, 0.5)
    assert isinstance(driver, ProcessDriver)
    try:
        look(driver.pids()[0])
        assert driver.wait(30)
    finally:
        driver.kill()
    return driver


LOGINS = {"cookies of a form": Login((BY_FORM,)), "a token of JSON": Login((BY_JSON,), "data.token")}


@server
@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("case", LOGINS)
def test_each_connection_logs_in_once_and_is_known_from_then(
    shop: tuple[Shop, Service], folder: Path, case: str
) -> None:
    made, service = shop
    requests = drive(service.endpoint(), folder, Declared(request=(PRIVATE,), login=LOGINS[case])).requests()
    assert not requests.outcome.any()
    assert made.logins == 4 + 1, "one for each connection, one for what is learnt"
    used = {sent.headers.get("authorization", sent.headers.get("cookie", "")) for sent in service.sent[6:]}
    assert len(used) >= 4, "each connection has a session of its own"


@server
@pytest.mark.usefixtures("secret")
def test_the_secret_is_in_no_file_no_argument_and_no_environment_of_the_driver(
    shop: tuple[Shop, Service], folder: Path
) -> None:
    seen: list[bytes] = []

    def look(pid: int) -> None:
        seen.extend(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))

    drive(shop[1].endpoint(), folder, Declared(request=(PRIVATE,), login=Login((BY_FORM,))), look=look)
    files = [path.read_bytes() for path in folder.iterdir()]
    assert any(b"wrk" in text for text in seen) and files
    for text in [*seen, *files]:
        assert SECRET.encode() not in text
        assert b"SHOP_PASSWORD" not in text
        assert b"session=" not in text


@server
def test_a_header_of_a_request_may_have_a_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cret")
    request = Request("cart", "GET", "/cart", (("Authorization", "Bearer {ENV:API_TOKEN}"),))

    def answer(sent: Sent) -> bytes:
        return said(b"a book" if sent.headers.get("authorization") == "Bearer s3cret" else b"")

    with serving(answer) as service:
        requests = drive(service.endpoint(), folder, Declared(request=(request,))).requests()
    assert not requests.outcome.any()
    assert not any(b"s3cret" in path.read_bytes() for path in folder.iterdir())


@server
def test_a_login_that_is_refused_is_said_before_the_load(
    shop: tuple[Shop, Service], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "wrong")
    with pytest.raises(TargetError, match="answers the login POST /login with status 403") as caught:
        drive(shop[1].endpoint(), folder, Declared(request=(PRIVATE,), login=Login((BY_FORM,))))
    assert "wrong" not in str(caught.value)


ANSWERS = {
    "no session": (said(b"welcome"), "", "neither a cookie nor a token"),
    "a cookie with a blank in its name": (said(b"", "200 OK", "Set-Cookie: a b=1"), "", "a cookie that is none"),
    "too many cookies": (said(b"", "200 OK", *(f"Set-Cookie: c{n}=1" for n in range(60))), "", "more than 50 cookies"),
    "no JSON": (said(b"<html>"), "token", "no JSON"),
    "no token": (said(b'{"token": {"token": 1}}'), "token.token", "token.token is no token"),
    "a token with a line break": (said(b'{"token": "a\\r\\nX: y"}'), "token", "token is no token"),
}


@server
@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_without_a_session_is_said(case: str, folder: Path) -> None:
    answer, token, why = ANSWERS[case]
    with (
        serving(lambda sent: answer) as service,
        pytest.raises(TargetError) as caught,
    ):
        declared = Declared(request=(PRIVATE,), login=Login((Request("login 1", "POST", "/login"),), token))
        drive(service.endpoint(), folder, declared)
    assert why in caught.value.fact


def test_a_secret_that_is_not_there_is_said_with_its_name() -> None:
    assert "NO_SUCH_SECRET" not in os.environ
    request = Request("cart", "GET", "/cart", (("X-Key", "{ENV:NO_SUCH_SECRET}"),))
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(request,)))
    with pytest.raises(StudyError, match="NO_SUCH_SECRET, which is not set"):
        workload.install(Endpoint("service", "127.0.0.1:1"))


def test_another_machine_is_sent_no_variable_that_is_not_meant_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_KEY", "s3cret")
    request = Request("cart", "GET", "/cart", (("X-Key", "{ENV:CLOUD_KEY}"),))
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(request,)))
    with pytest.raises(StudyError, match="would send the environment variable CLOUD_KEY to another machine"):
        workload.install(Endpoint("url", "203.0.113.7:80", attached=True))


def test_a_secret_that_would_be_a_second_header_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cret\r\nX: y")
    request = Request("cart", "GET", "/cart", (("X-Key", "{ENV:API_TOKEN}"),))
    workload = registry.make("http", {}, Allowance(US), declared=Declared(request=(request,)))
    with pytest.raises(StudyError, match="line break") as caught:
        workload.install(Endpoint("service", "127.0.0.1:1"))
    assert "s3cret" not in str(caught.value)


def test_a_session_has_one_cookie_header() -> None:
    request = Request("cart", "GET", "/cart", (("Cookie", "{ENV:COOKIE}"),))
    with pytest.raises(StudyError, match=r"\[workload\.login\] sets it too"):
        registry.make("http", {}, Allowance(US), declared=Declared(request=(request,), login=Login((BY_FORM,))))
