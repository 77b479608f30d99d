"""A browser's session is read in its order; what is no request of it is counted, and what is no HAR is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_drivers.har import HarError, parse_har


def entry(url: str = "https://shop.example/", at: str = "2026-11-24T12:00:00.000Z", **others: Any) -> dict[str, Any]:
    return {
        "startedDateTime": at,
        "time": 12.5,
        "request": {"method": "GET", "url": url, "headers": [{"name": "Accept", "value": "*/*"}]},
        "response": {"status": 200},
        **others,
    }


def har(*entries: Any) -> bytes:
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def test_entries_are_read_in_the_order_in_which_they_began() -> None:
    later = entry("http://shop.example:8080/b?c=1#d", "2026-11-24T13:00:01.5+01:00")
    found, strange = parse_har(har(later, entry()))
    assert [(one.origin, one.path) for one in found] == [
        ("https://shop.example", "/"),
        ("http://shop.example:8080", "/b?c=1"),
    ]
    assert found[1].started_s - found[0].started_s == pytest.approx(1.5)
    assert found[0].ended_s - found[0].started_s == pytest.approx(0.0125, abs=1e-6)
    assert found[0].headers == (("Accept", "*/*"),)
    assert strange == 0


def test_a_body_is_read() -> None:
    posted = {"method": "post", "url": "http://x/", "postData": {"mimeType": "a/b", "text": "ü=1"}}
    ((found,), _) = parse_har(har(entry(request=posted)))
    assert (found.method, found.body) == ("POST", "ü=1")


STRANGE = {
    "data": entry("data:text/plain,x"),
    "a web socket": entry("wss://shop.example/"),
    "no host": entry("http://"),
    "no such port": entry("http://x:99999999/"),
    "no time": entry(at="soon"),
    "no request": entry(request=None),
    "no table": 7,
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_is_no_request_of_http_is_counted(what: str) -> None:
    found, strange = parse_har(har(entry(), STRANGE[what]))
    assert (len(found), strange) == (1, 1)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"log": []}', b'{"log": {"entries": {}}}', b"\xff\xfe", b"1" * 50]
)
def test_what_is_no_har_is_refused(text: bytes) -> None:
    with pytest.raises(HarError):
        parse_har(text)


def test_a_session_without_an_end_is_refused() -> None:
    with pytest.raises(HarError, match="more than 20,000"):
        parse_har(har(*[0] * 20_001))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**19), 10**19) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["startedDateTime", "time", "request", "response"])
ENTRIES = st.builds(lambda changes: {**entry(), **changes}, st.dictionaries(KEYS, JSON))


@pytest.mark.long
@given(st.lists(ENTRIES, max_size=4))
def test_whatever_entries_are_they_are_read_or_counted(entries: list[dict[str, Any]]) -> None:
    try:
        found, strange = parse_har(har(*entries))
    except HarError:
        return
    assert len(found) + strange == len(entries)
    assert all(0 <= one.status <= 599 and one.ended_s >= one.started_s for one in found)
