"""Markup that is made by hand: every name and every value is escaped here, whoever wrote it."""

import base64
import hashlib
from collections.abc import Mapping

from markupsafe import Markup, escape

Attribute = str | int | float
VOID = frozenset({"meta", "input"})


def element(tag: str, attributes: Mapping[str, Attribute], *inside: str | Markup) -> Markup:
    """One element; text inside is escaped, other elements stay. An attribute without a value ("") is left out."""
    told = Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in attributes.items() if value != "")
    if tag in VOID:
        return Markup("<{tag}{told}>").format(tag=tag, told=told)
    return Markup("<{tag}{told}>{inside}</{tag}>").format(tag=tag, told=told, inside=joined(*inside))


def joined(*inside: str | Markup) -> Markup:
    """Text and elements one after the other; text is escaped."""
    return Markup("").join(map(escape, inside))


def policy(scripts: list[str], styles: list[str]) -> str:
    """A Content-Security-Policy (https://www.w3.org/TR/CSP3/) of a page's own scripts and style sheets, and nothing
    else."""
    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def hashes(texts: list[str]) -> str:
    """The sources of a Content-Security-Policy that allow these texts and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
