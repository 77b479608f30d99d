"""Each connection of the load logs in once, before it, by Loadframe itself, so that the driver never gets the secret.
{ENV:NAME} stands for an environment variable, whose value is only in memory."""

import json
import os
import re
from collections.abc import Callable, Sequence
from urllib.parse import quote_plus

from loadframe.connections.http_words import TOKEN, VALUE, wrong_header
from loadframe.errors import StudyError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.masking import remember
from loadframe.model import Checked, Endpoint, Request
from loadframe.workloads.asking import Answer, ask, strange
from loadframe.workloads.http_driver import Ask
from loadframe.workloads.options import content_of

AT_ONCE = 16
"""Concurrent logins: many a server makes them slow on purpose."""
MOST_COOKIES, MOST_SESSION_BYTES = 50, 8 << 10

WRONG_LOGIN = "Check what [workload.login] sends, and workload.login.token."
Headers = tuple[tuple[str, str], ...]
NAMED = re.compile(r"\{ENV:([^{}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
LONGEST_SECRET = 16 << 10
LARGEST_BODY = 1 << 20
ESCAPED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("json", lambda value: json.dumps(value)[1:-1]),
    ("x-www-form-urlencoded", quote_plus),
)


def with_secrets(request: Request, highest: int, *, operation: int = 0, checked: Checked = "status") -> Ask:
    """highest: status of a right answer, if the study names none. StudyError if a secret is missing."""
    return Ask(
        request.method,
        request.path,
        headers_of(request),
        body_of(request),
        operation,
        request.weight,
        lowest=request.expect or 200,
        highest=request.expect or highest,
        checked=checked,
        contains=request.contains.encode(),
        fails=request.fails.encode(),
    )


def log_in(endpoint: Endpoint, steps: Sequence[Ask], token: str) -> Headers:
    """The headers of one session: a cookie, and the bearer token if one is named. TargetError."""
    cookies: dict[str, str] = {}
    answer = Answer(0, b"")
    for step in steps:
        answer = ask(endpoint, step.path, step.method, (*step.headers, *_cookie(cookies)), step.body)
        if not step.lowest <= answer.status <= step.highest:
            remedy = "Check what [workload.login] sends, and the variables of the environment that it names."
            raise strange(endpoint, f"the login {step.method} {step.path}", f"status {answer.status}", remedy)
        _keep(cookies, answer, endpoint)
    headers = (*_cookie(cookies), *(_bearer(answer.body, token, endpoint) if token else ()))
    if not headers:
        remedy = "Name the token's field in workload.login.token, or leave [workload.login] out."
        raise strange(endpoint, "the login", "neither a cookie nor a token, so there is no session", remedy)
    return headers


def _cookie(cookies: dict[str, str]) -> Headers:
    joined = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return (("Cookie", joined),) if joined else ()


def _keep(cookies: dict[str, str], answer: Answer, endpoint: Endpoint) -> None:
    """Domain, path and lifetime are ignored: all requests go to one address, soon (RFC 6265, 5.2)."""
    for header, line in answer.headers:
        if header.lower() != "set-cookie":
            continue
        first, *attributes = line.split(";")
        name, _, value = (part.strip() for part in first.partition("="))
        if not TOKEN.fullmatch(name) or not VALUE.fullmatch(value):
            raise strange(endpoint, "the login", "a cookie that is none", WRONG_LOGIN)
        expired = any(attribute.strip().lower().replace(" ", "") == "max-age=0" for attribute in attributes)
        if expired or not value:
            cookies.pop(name, None)
        else:
            cookies[name] = value
    if len(cookies) > MOST_COOKIES or sum(len(part) for pair in cookies.items() for part in pair) > MOST_SESSION_BYTES:
        what = f"more than {MOST_COOKIES} cookies or {MOST_SESSION_BYTES:,} bytes of them"
        raise strange(endpoint, "the login", what, WRONG_LOGIN)


def _bearer(body: bytes, token: str, endpoint: Endpoint) -> Headers:
    try:
        value = parse_json(body)
    except JsonError as error:
        what = "what is no JSON, so there is no token in it"
        raise strange(endpoint, "the login", what, WRONG_LOGIN) from error
    for part in token.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value or not VALUE.fullmatch(value) or len(value) > MOST_SESSION_BYTES:
        raise strange(endpoint, "the login", f"JSON in which {token} is no token", WRONG_LOGIN)
    return (("Authorization", f"Bearer {value}"),)


def variables(request: Request) -> frozenset[str]:
    return frozenset(name for text in (request.body, *dict(request.headers).values()) for name in NAMED.findall(text))


def headers_of(request: Request) -> tuple[tuple[str, str], ...]:
    """StudyError if a secret is missing, or cannot stand in a header."""
    headers = tuple((name, _filled(value, str)) for name, value in request.headers)
    for name, value in headers:
        if (why := wrong_header(name, value)) is not None:
            raise StudyError(
                f"The header {name!r} of the request {request.name!r} cannot be sent with the value that the "
                f"environment gives it: {why}.",
                remedy="Correct the variable; the value is not shown.",
            )
    return headers


def body_of(request: Request) -> bytes:
    """Secrets are escaped by Content-Type. StudyError if one is missing or the body is too large."""
    if request.body_file:
        return content_of(request.body_file, LARGEST_BODY, f"The body of the request {request.name!r}")
    kind = next((value.lower() for name, value in request.headers if name.lower() == "content-type"), "")
    spell = next((how for word, how in ESCAPED if word in kind), str)
    return _filled(request.body, spell).encode()


def _filled(text: str, spell: Callable[[str], str]) -> str:
    return NAMED.sub(lambda match: spell(_value(match[1])), text)


def _value(name: str) -> str:
    if not NAME.fullmatch(name):
        raise StudyError(
            f"{{ENV:{name[:100]}}} names no variable of the environment.",
            remedy="A name has letters, digits and underscores, for example {ENV:API_TOKEN}.",
        )
    value = os.environ.get(name)
    if not value:
        raise StudyError(
            f"The study takes a secret from the environment variable {name}, which is not set.",
            remedy=f"Set it for this command, for example: export {name}; it is not written anywhere.",
        )
    if len(value) > LONGEST_SECRET:
        raise StudyError(
            f"The environment variable {name} has {len(value):,} characters.",
            remedy=f"A secret has at most {LONGEST_SECRET:,}.",
        )
    remember([value])
    return value
