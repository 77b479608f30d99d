"""Secrets of requests: {ENV:NAME} in a study, which the run folder keeps, becomes the value of the environment variable
NAME, in the memory of Loadframe and of the driver alone."""

import json
import os
import re
from collections.abc import Callable
from urllib.parse import quote_plus

from loadframe.connections.http_words import wrong_header
from loadframe.errors import StudyError
from loadframe.masking import remember
from loadframe.model import Request
from loadframe.workloads.options import content_of

NAMED = re.compile(r"\{ENV:([^{}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
LONGEST_SECRET = 16 << 10
LARGEST_BODY = 1 << 20
ESCAPED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("json", lambda value: json.dumps(value)[1:-1]),
    ("x-www-form-urlencoded", quote_plus),
)
"""How a value is spelt in a body, by a word of its Content-Type."""


def variables(request: Request) -> frozenset[str]:
    """The variables that a request names."""
    return frozenset(name for text in (request.body, *dict(request.headers).values()) for name in NAMED.findall(text))


def headers_of(request: Request) -> tuple[tuple[str, str], ...]:
    """With the values. StudyError where a variable is not there, or its value cannot stand in a header."""
    found = tuple((name, _filled(value, str)) for name, value in request.headers)
    for name, value in found:
        if (why := wrong_header(name, value)) is not None:
            raise StudyError(
                f"The header {name!r} of the request {request.name!r} cannot be sent with the value that the "
                f"environment gives it: {why}.",
                remedy="Correct the variable; the value is not shown.",
            )
    return found


def body_of(request: Request) -> bytes:
    """With the values, spelt as the Content-Type asks for. StudyError where one is missing or it is too large."""
    if request.body_file:
        return content_of(request.body_file, LARGEST_BODY, f"The body of the request {request.name!r}")
    kind = next((value.lower() for name, value in request.headers if name.lower() == "content-type"), "")
    spell = next((how for word, how in ESCAPED if word in kind), str)
    return _filled(request.body, spell).encode()


def _filled(text: str, spell: Callable[[str], str]) -> str:
    return NAMED.sub(lambda found: spell(_value(found[1])), text)


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
