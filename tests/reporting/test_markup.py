"""Whatever a record says, its page has no script, handler, element or attribute that a harmless one does not have."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from markupsafe import Markup
from tunings import WRITTEN as TUNING

from loadframe.model import Investigation
from loadframe.reporting.html import element
from loadframe.reporting.reports import render_page

from .test_ladder_report import FOUND as LADDER

PAYLOADS = (
    """"><script>alert(1)</script><img src=x onerror=alert(1)>' onload='alert(1)' x='""",
    """javascript:alert(1)//" onclick="alert(1)</script></style></title></textarea>--><svg onload=alert(1)><!--""",
)


LOOKED_UP = ("component",)
"""Only a profile of the target is drawn."""


def with_payload(value: Any, payload: str, hint: Any = Any) -> Any:
    """A record with the payload before every text of it; words of a closed list stay. Keys, some of which are looked
    up, come once more with it."""
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        changed = {
            each.name: with_payload(getattr(value, each.name), payload, hints[each.name])
            for each in fields(value)
            if each.name not in LOOKED_UP
        }
        return replace(value, **changed)
    if isinstance(value, str):
        return value if closed(hint) else payload + value
    if isinstance(value, Mapping):
        return {
            **{key: with_payload(each, payload) for key, each in value.items()},
            **{with_payload(key, payload): with_payload(each, payload) for key, each in value.items()},
        }
    if isinstance(value, tuple):
        inner = next(iter(get_args(hint)), Any)
        return tuple(with_payload(each, payload, inner) for each in value)
    return value


def closed(hint: Any) -> bool:
    return get_origin(hint) is Literal or any(closed(each) for each in get_args(hint))


class Shape(HTMLParser):
    """Of a page: which elements with which attributes there are, and what is run or fetched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[tuple[str, str]] = set()
        self.scripts: list[tuple[str, str]] = []
        self.addresses: list[str] = []
        self._script: list[str] | None = None
        self._kind = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements |= {(tag, ""), *((tag, name) for name, _ in attrs)}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        if tag == "script":
            self._script, self._kind = [], dict(attrs).get("type") or ""

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            self.scripts.append((self._kind, "".join(self._script)))
            self._script = None

    @property
    def run(self) -> list[str]:
        return [text for kind, text in self.scripts if kind != "application/json"]


@pytest.fixture(scope="module")
def clean() -> dict[str, Shape]:
    """Of the records that were drawn already."""
    return {}


@pytest.mark.long
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_of_any_record_becomes_markup(
    profiled: Investigation, foretold: Investigation, clean: dict[str, Shape], payload: str
) -> None:
    for name, record in (("profiled", profiled), ("foretold", foretold), ("ladder", LADDER), ("tuning", TUNING)):
        harmless = clean.get(name) or clean.setdefault(name, Shape(render_page(record)))
        hostile = Shape(render_page(with_payload(record, payload)))
        new = hostile.elements - harmless.elements
        assert not new, f"{name}: {new}"
        assert hostile.run == harmless.run, name
        assert len(hostile.scripts) <= len(harmless.scripts), name
        files = {address for address in harmless.addresses if not address.startswith("#")}
        assert all(address.startswith("#") or address in files for address in hostile.addresses), name


def test_every_text_is_reached(profiled: Investigation) -> None:
    """The test above would be empty if the payload came nowhere."""
    page = render_page(with_payload(profiled, "PAYLOAD"))
    for where in ("k-PAYLOADuser", 'data-name="PAYLOAD', "<h1>PAYLOAD", "<title>PAYLOAD"):
        assert where in page, where


def test_the_page_allows_its_own_script_and_style_alone(profiled: Investigation, farm: Investigation) -> None:
    for page in (render_page(profiled), render_page(farm), render_page(LADDER), render_page(TUNING)):
        (told,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
        policy = dict(part.strip().split(" ", 1) for part in html.unescape(told).split(";"))
        assert policy.pop("default-src") == policy.pop("base-uri") == policy.pop("form-action") == "'none'"
        assert policy.pop("img-src") == "data:"
        for name, tag in (("script-src", r"<script type=\"module\"[^>]*>"), ("style-src", "<style>")):
            allowed = set(policy.pop(name).split())
            used = re.findall(rf"{tag}(.*?)</", page, flags=re.S)
            assert {
                f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in used
            } <= allowed
            assert all(each.startswith("'sha256-") for each in allowed)
        assert policy == {}
        assert page.index("Content-Security-Policy") < page.index("<style>"), "it holds for what comes after it"
        assert " style=" not in page


def test_an_element_escapes_what_it_is_given() -> None:
    inside = element("b", {}, "<i>")
    assert element("a", {"class": "", "x": '"<&', "y": 1}, inside, "<", Markup("<i>")) == (
        '<a x="&#34;&lt;&amp;" y="1"><b>&lt;i&gt;</b>&lt;<i></a>'
    )


def test_markup_is_made_in_few_places() -> None:
    """What says of a text that it is markup is this module, the charts' engine, and the page for its own files."""

    import loadframe.reporting as room

    made = {
        path.name
        for path in Path(room.__file__).parent.glob("*.py")
        if re.search(r"\bMarkup\([^\"')]", path.read_text())
    }
    assert made <= {"vega.py", "html.py"}
    templates = "".join(path.read_text() for path in Path(room.__file__).parent.glob("*.html"))
    assert "| safe" not in templates and "|safe" not in templates and "autoescape" not in templates
