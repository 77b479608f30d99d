"""Hand-made markup: every attribute and every text is escaped here."""

import base64
import hashlib
from collections.abc import Mapping

from markupsafe import Markup, escape

Attribute = str | int | float
VOID = frozenset({"meta", "input"})


def element(tag: str, attributes: Mapping[str, Attribute], *inside: str | Markup) -> Markup:
    """One element; text inside is escaped, elements stay. An attribute with the value "" is left out."""
    rendered = Markup("").join(
        Markup(' {}="{}"').format(name, value) for name, value in attributes.items() if value != ""
    )
    if tag in VOID:
        return Markup("<{tag}{told}>").format(tag=tag, told=rendered)
    return Markup("<{tag}{told}>{inside}</{tag}>").format(tag=tag, told=rendered, inside=joined(*inside))


def joined(*inside: str | Markup) -> Markup:
    """Concatenated text and elements; text is escaped."""
    return Markup("").join(map(escape, inside))


def policy(scripts: list[str], styles: list[str]) -> str:
    """A Content-Security-Policy (https://www.w3.org/TR/CSP3/) that allows only a page's own scripts and styles."""
    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def hashes(texts: list[str]) -> str:
    """Source expressions of a Content-Security-Policy that allow exactly these texts."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
