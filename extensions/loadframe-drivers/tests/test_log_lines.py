"""Lines of access logs are read as nginx and Apache mean them; what is none is counted, and never raises."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.connections.http_words import wrong_path
from loadframe_drivers.access_log import LONGEST_LINE, Logged, lines, parse_line

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC).timestamp()

READ = {
    "common": (
        '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
        Logged(971211336.0, True, "GET", "/apache_pb.gif", 200),
    ),
    "combined, HTTP/2": (
        '::1 - - [24/Nov/2026:12:00:00 +0000] "POST /a?b=%20c HTTP/2.0" 201 - "https://x/" "Mozilla/5.0 (\\"x\\")"',
        Logged(NOON, True, "POST", "/a?b=%20c", 201),
    ),
    "a virtual host first, a fraction of a second": (
        'shop:443 10.0.0.1 - - [24/Nov/2026:13:00:00.250 +0100] "GET / HTTP/1.1" 200 1',
        Logged(NOON + 0.25, False, "GET", "/", 200),
    ),
    "$msec": (f'{NOON:.0f}.125 10.0.0.1 "GET / HTTP/1.1" 304 0.003', Logged(NOON + 0.125, False, "GET", "/", 304)),
    "$time_iso8601": ('2026-11-24T07:00:00-05:00 "GET / HTTP/1.1" 200 1', Logged(NOON, True, "GET", "/", 200)),
    "a request to a proxy": (
        '- [24/Nov/2026:12:00:00 +0000] "GET http://other:8080/x?y HTTP/1.1" 200 1',
        Logged(NOON, True, "GET", "/x?y", 200),
    ),
}


@pytest.mark.parametrize("form", READ)
def test_a_line_is_read_as_its_server_means_it(form: str) -> None:
    line, logged = READ[form]
    assert parse_line(line) == logged


NOT_READ = {
    "nothing": "",
    "no request": '- [24/Nov/2026:12:00:00 +0000] "-" 400 0',
    "bytes of TLS": '- [24/Nov/2026:12:00:00 +0000] "\\x16\\x03\\x01" 400 157',
    "an escape in the path": '- [24/Nov/2026:12:00:00 +0000] "GET /\\x22 HTTP/1.1" 200 1',
    "no time": '127.0.0.1 "GET / HTTP/1.1" 200 1',
    "no such month": '- [24/Foo/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1',
    "no such day": '- [31/Feb/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1',
    "no such zone": '- [24/Nov/2026:12:00:00 +9900] "GET / HTTP/1.1" 200 1',
    "no status": '- [24/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" - 1',
    "a status of 999": '- [24/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 999 1',
    "an asterisk": '- [24/Nov/2026:12:00:00 +0000] "OPTIONS * HTTP/1.1" 200 1',
    "another scheme": '- [24/Nov/2026:12:00:00 +0000] "GET ftp://x/ HTTP/1.1" 200 1',
    "a tunnel": '- [24/Nov/2026:12:00:00 +0000] "CONNECT x:443 HTTP/1.1" 200 1',
}


@pytest.mark.parametrize("what", NOT_READ)
def test_a_line_without_a_request_that_can_be_sent_is_none(what: str) -> None:
    assert parse_line(NOT_READ[what]) is None


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1)),
    st.integers(-12 * 60, 14 * 60),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='#\\"'), max_size=50),
    st.integers(100, 599),
)
def test_what_a_server_writes_is_what_is_read(moment: datetime, east: int, rest: str, status: int) -> None:
    at = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=east)))
    line = f'1.2.3.4 - - [{at.strftime("%d/%b/%Y:%H:%M:%S %z")}] "GET /{rest} HTTP/1.1" {status} 7 "-" "-"'
    assert parse_line(line) == Logged(at.timestamp(), True, "GET", f"/{rest}", status)


TIMES = ["[24/Nov/2026:12:00:00 +0000]", "1764021600.123", "2026-11-24T12:00:00Z"]
PARTS = st.sampled_from([*TIMES, '"GET / HTTP/1.1"', " 200 ", '"', "[", "\\x"])


@given(st.lists(PARTS | st.text(max_size=8), max_size=12).map("".join))
def test_any_line_is_a_request_that_can_be_sent_or_none(line: str) -> None:
    logged = parse_line(line)
    assert logged is None or (wrong_path(logged.path) is None and 100 <= logged.status <= 599)


# --- files ---


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_may_be_packed(tmp_path: Path, packed: bool) -> None:
    text = b"one\ntwo\xff\nthree"
    (tmp_path / "log").write_bytes(gzip.compress(text) if packed else text)
    assert list(lines(tmp_path / "log")) == ["one\n", "two�\n", "three"]


def test_a_line_without_an_end_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\n" + b"x" * (3 * LONGEST_LINE) + b"\ntwo\n")
    assert list(lines(tmp_path / "log")) == ["one\n", None, "two\n"]


def test_a_packed_log_that_is_cut_off_is_said(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(b"one\n" * 10_000)[:-9])
    with pytest.raises(OSError, match="damaged"):
        list(lines(tmp_path / "log"))
