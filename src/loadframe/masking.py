"""Secrets in texts: which names and values look like one, and the one function that hides them.

Every error, all that is printed for people, each traceback that is kept and each command line that a run keeps goes
through `masked`. It hides values by their form (a password in an address, the value of an option or a variable whose
name says that it is secret), and those that were seen in such a place wherever else they stand. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 8
"""Characters of a value that is hidden wherever it stands: a shorter one may be a part of any word."""
_NAME = re.compile(
    r"(.*_)?(pass|passwort|pwd|secrets|token|apikey|key|authorization|cookie|requirepass|masterauth)(_?\d+)?"
    r"|.*(password|passwd|passphrase|secret|credential).*"
)
_NO_NAME = re.compile(
    r"(old)?pwd|.*_(file|path|dir|folder|encryption|validation|lifetime|length)|.*(public|primary|foreign|sort)_key"
)
_WORD = re.compile(r"pass|pwd|secret")
"""In the name of a value that is a secret also where it is a number."""
_PLACE = re.compile(r"\$?\{[^{}]*\}|\$\w+|\*+")
"""Stands for a value, and is none."""
_VALUE = r"(?P<secret>\"(?:[^\"\\]|\\.){0,512}\"|'[^']{0,512}'|[^\s-]\S*?(?=[:;,]?(?:\s|$)))"
"""The bounds keep the time in proportion to the text."""
_FORMS = tuple(
    map(
        re.compile,
        (
            r"(?<![\w+.-])[A-Za-z][\w+.-]*://[^\s/:@?#'\"]*:(?!\d{1,5}(?:[/?#\s]|$))(?P<secret>[^\s'\"]{1,512})@",
            # as drivers of Go and others have it: user:password@tcp(host:3306)/name
            r"(?<![\w+.%-])[\w+.%-]+:(?!//)(?P<secret>[^\s/@:'\"{}]+)@(?=[\w\[(/])",
            r"(?i)\b(?P<name>(?:proxy-)?authorization|cookie|x-api-key):\s*(?:(?:bearer|basic|digest)\s+)?(?P<secret>\S+)",
            r"(?P<quote>[\"'])(?P<name>[\w.-]+)(?P=quote)\s*:\s*" + _VALUE,
            r"(?<![\w.#-])(?P<name>-{0,2}[\w.-]+)\s?=\s?" + _VALUE,
            r"(?<!\S)(?P<name>--?[A-Za-z][\w-]*)\s+" + _VALUE,
        ),
    )
)
remembered: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether a variable, an option or a key of this name usually has a secret."""
    plain = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip("-")[-100:])
    plain = re.sub(r"[-.]", "_", plain).lower()
    return _NAME.fullmatch(plain) is not None and _NO_NAME.fullmatch(plain) is None


def remember(values: Iterable[str]) -> None:
    """Hide these from now on wherever they stand; not plain words and numbers, which may stand anywhere."""
    for value in values:
        remembered.update(one for one in {value, unquote(value)} if len(one) >= SHORTEST and not one.isalpha())


def masked(text: str) -> str:
    """The text with each secret in it hidden."""
    for value in sorted(remembered, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return replaced(text, lambda _: HIDDEN)


def masked_values(declared: Any, name: str = "") -> Any:
    """The same of all texts in what becomes JSON. name: of the value."""
    if isinstance(declared, Mapping):
        return {key: masked_values(value, "" if key == "key" else str(key)) for key, value in declared.items()}
    if isinstance(declared, list | tuple):
        return [masked_values(value) for value in declared]
    if isinstance(declared, str):
        return HIDDEN if is_value_of(name, declared) else masked(declared)
    return declared


def secrets_in(declared: object, name: str = "") -> Iterator[str]:
    """What in tables of a study, words of a command line or a single value looks like a secret. name: of the value."""
    if isinstance(declared, Mapping):
        for key, value in declared.items():
            yield from secrets_in(value, "" if key == "key" else str(key))  # of a study, `key` is a name in a file
    elif isinstance(declared, str):
        if is_value_of(name, declared):
            yield declared
        found: dict[str, None] = {}
        replaced(declared, lambda secret: found.setdefault(secret) or HIDDEN)
        yield from found
    elif isinstance(declared, Sequence):
        for before, value in zip(("", *declared), declared, strict=False):
            option = isinstance(before, str) and before.startswith("-") and "=" not in before
            yield from secrets_in(value, before if option and not str(value).startswith("-") else "")


def is_value_of(name: str, value: str) -> bool:
    """Whether a value is a secret for its name: a number only of what is called a password or so."""
    if not value or _PLACE.fullmatch(value) or not is_secret(name):
        return False
    return not value.isdigit() or _WORD.search(name.lower()) is not None


def replaced(text: str, stand_in: Callable[[str], str]) -> str:
    """With something else in the place of what, by its form, is a secret."""

    def replace(match: re.Match[str]) -> str:
        secret, name = match["secret"], match.groupdict().get("name")
        quote = secret[0] if len(secret) > 1 and secret[0] == secret[-1] and secret[0] in "\"'" else ""
        value = secret[1:-1] if quote else secret
        of_study = name is not None and re.fullmatch(r"([a-z_]+\.)*key", name)  # there `key` is a name in a file
        if _PLACE.fullmatch(value) or of_study or (name is not None and not is_value_of(name, value)):
            return match[0]
        start, end = (at - match.start() for at in match.span("secret"))
        return f"{match[0][:start]}{quote}{stand_in(value)}{quote}{match[0][end:]}"

    for form in _FORMS:
        text = form.sub(replace, text)
    return text
