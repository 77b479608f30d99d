"""Requests, login and think time of a study: read as declared, and nothing else passes."""

from __future__ import annotations

import pytest

from loadframe.errors import StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Login, Request, Think
from loadframe.study.declaration import Study
from loadframe.study.reading import parse
from loadframe.workloads import registry

STUDY = """
[study]
name = "shop"
question = "How many orders a second?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:8080"
[load]
axis = "concurrency"
levels = [1, 2]
[workload]
kind = "http"
"""


def read(more: str) -> Study:
    return parse(STUDY + more)


def test_requests_are_read_as_declared() -> None:
    study = read("""
[[workload.request]]
path = "/items?page=2"
weight = 8
checked = "length"
[[workload.request]]
name = "order"
method = "POST"
path = "/orders"
body = '{"item": 7}'
headers = { Content-Type = "application/json", Authorization = "Bearer {ENV:API_TOKEN}" }
expect = 201
""")
    assert study.workload.declared.request == (
        Request("GET /items?page=2", "GET", "/items?page=2", weight=8, checked="length"),
        Request(
            "order",
            "POST",
            "/orders",
            (("Content-Type", "application/json"), ("Authorization", "Bearer {ENV:API_TOKEN}")),
            '{"item": 7}',
            expect=201,
        ),
    )
    assert parse(study.as_toml()).workload == study.workload


@pytest.mark.parametrize(
    ("given", "think"),
    [
        ('"500ms"', Think(0.5, "fixed")),
        ('{ mean = "2s", spread = "exponential" }', Think(2.0, "exponential")),
    ],
)
def test_users_think(given: str, think: Think) -> None:
    study = read(f"think_time = {given}\n")
    assert study.workload.declared.think_time == think
    assert parse(study.as_toml()).workload == study.workload


def test_a_login_of_one_request_may_be_its_table() -> None:
    one = read('[workload.login]\nmethod = "POST"\npath = "/login"\nbody = "pw={ENV:PW}"\ntoken = "data.token"\n')
    assert one.workload.declared.login == Login(
        (Request("login 1", "POST", "/login", body="pw={ENV:PW}"),), "data.token"
    )
    several = read(
        '[workload.login]\n[[workload.login.request]]\npath = "/form"\n[[workload.login.request]]\npath="/b"'
    )
    assert several.workload.declared.login == Login(
        (Request("login 1", "GET", "/form"), Request("login 2", "GET", "/b"))
    )


REFUSED = {
    "a second request in a header": ('path = "/"\nheaders = { X = "1\\r\\nGet: /admin" }', "line break"),
    "a header's name with a blank": ('path = "/"\nheaders = { "X Y" = "1" }', "no word that HTTP allows"),
    "a header that follows from the address": ('path = "/"\nheaders = { host = "other" }', "the target's address"),
    "a length": ('path = "/"\nheaders = { Content-Length = "7" }', "follows from the body"),
    "chunks": ('path = "/"\nheaders = { Transfer-Encoding = "chunked" }', "sent whole"),
    "closing": ('path = "/"\nheaders = { Connection = "close" }', "keep_alive"),
    "a header twice": ('path = "/"\nheaders = { X-A = "1", x-a = "2" }', "given twice"),
    "a secret in the study": ('path = "/"\nheaders = { Authorization = "Bearer abc" }', "{ENV:NAME}"),
    "a second request in the path": ('path = "/ HTTP/1.1\\r\\nX: y"', "without blanks"),
    "a whole address": ('path = "http://other/"', "must begin with /"),
    "HEAD": ('path = "/"\nmethod = "HEAD"', "waits for the body"),
    "another method": ('path = "/"\nmethod = "get"', "must be one of"),
    "a body of a GET": ('path = "/"\nbody = "x"', "no body"),
    "two bodies": ('path = "/"\nmethod = "PUT"\nbody = "x"\nbody_file = "y"', "one of them is enough"),
    "no weight": ('path = "/"\nweight = 0', "greater than 0"),
    "no status": ('path = "/"\nexpect = 42', "greater than or equal to 100"),
    "the page of a POST": ('path = "/"\nmethod = "POST"\nchecked = "bytes"', "the page of a GET"),
    "another name twice": ('path = "/"\n[[workload.request]]\npath = "/"', "two requests are called 'GET /'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_that_is_not_one_is_refused(case: str) -> None:
    text, why = REFUSED[case]
    with pytest.raises(StudyError) as caught:
        read(f"[[workload.request]]\n{text}\n")
    assert why in caught.value.fact


@pytest.mark.parametrize("given", ['"0s"', '"2h"', "true", '{ mean = "1s", spread = "normal" }'])
def test_an_impossible_think_time_is_refused(given: str) -> None:
    with pytest.raises(StudyError, match="think_time"):
        read(f"think_time = {given}\n")


def test_a_workload_without_requests_of_its_own_refuses_tables() -> None:
    with pytest.raises(StudyError, match=r"workload\.think_time: the workload job-queue does not take it"):
        registry.make("job-queue", {}, Allowance(US), declared=read('think_time = "1s"').workload.declared)
