"""Numbers that a service exposes, as text of three forms: Prometheus or OpenMetrics, JSON, and lines of name and value.
All is bounded. What is left out is named with its reason; of what contradicts the format as a whole nothing is used."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, TextIO, cast

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_fd_to_metric_families as openmetrics_families
from prometheus_client.parser import text_fd_to_metric_families as prometheus_families

from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import finite, is_number
from loadframe.formats.said import why, words
from loadframe.metrics.exposed import COUNTED, LONGEST_NAME, Name, named, split

MOST_SERIES = 2_000
MOST_LINES = 20_000
LONGEST_LINE = 4_000
LONGEST_READING_S = 2.0
"""CPU time. 2,000 series with labels take 0.07 s."""
LARGEST = 2.0**63
"""A larger number is no count and no size; a recording refuses it, too (recording/metrics.py)."""
EXAMPLES = 3
TOO_LONG = f"are on a line of more than {LONGEST_LINE:,} characters"
UNUSABLE = "have a name that is too long, not printable or with braces of its own"
_BRACES = frozenset('{}"')
_ASIDE = ("_created", "_info")
_FAULTS = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError)
TYPE, END = "# TYPE ", "# EOF"
"""OpenMetrics 1.0: an answer without its end was cut off."""
FIRST = 2**40
"""In place of values in Page: numbers that no page has by chance, exact in a float."""
LONGEST_VALUE = 64
LARGEST_PAGE = 1 << 20
"""Bytes; a larger page, or one of more than MOST_LINES, is read in full each time."""


class ExpositionError(ValueError):
    """Why an answer is useless as a whole."""


@dataclass(frozen=True, slots=True)
class Pick:
    """select: wanted names; empty: all. counters: names that count up, if the form does not say so. first: names that
    are kept before others, if there are more than MOST_SERIES."""

    select: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    def has(self, name: Name) -> bool:
        return not self.select or any(_means(wanted, name) for wanted in self.select)

    def counts(self, name: Name) -> bool:
        return any(_means(counter, name) for counter in self.counters)


@dataclass(frozen=True, slots=True)
class Exposed:
    """counted: the names of counters. left_out: reason -> names without a value. families: of each name. types: family
    -> its declared types (some names have two)."""

    values: Mapping[str, float]
    counted: frozenset[str]
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)


class _Collected:
    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._values: dict[str, float] = {}
        self._counted: set[str] = set()
        self._left_out: dict[str, list[str]] = {}
        self._families: dict[str, str] = {}
        self._types: dict[str, set[str]] = {}

    def add(
        self,
        base: str,
        labels: Mapping[str, str],
        value: float,
        counted: bool = False,
        family: str = "",
        type: str = "",
    ) -> None:
        exposed = Name(base, tuple(sorted(labels.items())))
        if not self._pick.has(exposed):
            return
        counted = counted or self._pick.counts(exposed)
        name = str(named(base, labels, counted=counted))
        if len(name) > LONGEST_NAME or not name.isprintable() or not base or not _BRACES.isdisjoint(base):
            self.leave_out(UNUSABLE, name)
        elif not -LARGEST < value < LARGEST:  # NaN is neither
            if "quantile" not in labels:  # a summary without observations is NaN
                self.leave_out("are not finite numbers", name)
        elif name in self._values:
            self.leave_out("are exposed twice", name)
        else:
            self._values[name] = float(value)
            self._counted |= {name} if counted else set()
            self._families[name] = family or base
            self._types.setdefault(family or base, set()).add(type)

    def leave_out(self, reason: str, name: str) -> None:
        self._left_out.setdefault(reason, []).append(words(name, LONGEST_NAME))

    def exposed(self) -> Exposed:
        """Nothing of a name that came twice, as one of the two is wrong."""
        twice = set(self._left_out.get("are exposed twice", ()))
        names = [name for name in self._values if name not in twice]
        if len(names) > MOST_SERIES:
            first = [name for name in names if any(_means(wanted, split(name)) for wanted in self._pick.first)]
            kept = list(dict.fromkeys((*first, *names)))
            for name in kept[MOST_SERIES:]:
                self.leave_out(f"are beyond the first {MOST_SERIES:,}", name)
            names = kept[:MOST_SERIES]
        values = {name: self._values[name] for name in names}
        types = {family: frozenset(types) for family, types in self._types.items()}
        return Exposed(values, frozenset(self._counted & values.keys()), self._left_out, self._families, types)


def _means(asked: str, name: Name) -> bool:
    wanted = split(asked)
    return wanted.base in (name.base, _stem(name.base)) and set(wanted.labels) <= set(name.labels)


def _stem(base: str) -> str:
    for ending in (*COUNTED, *_ASIDE):
        if base.endswith(ending):
            return base.removesuffix(ending)
    return base


def read_prometheus(data: bytes, pick: Pick = Pick(), *, content_type: str = "") -> Exposed:
    """Version 0.0.4, or OpenMetrics if the content type says so. ExpositionError."""
    text = _text(data)
    if "html" in content_type or text[:64].lstrip().startswith("<"):
        raise ExpositionError("it is a page of HTML")
    collected = _Collected(pick)
    strict = "openmetrics" in content_type
    parse: Callable[[TextIO], Iterable[Metric]] = openmetrics_families if strict else prometheus_families
    lines = cast(TextIO, _lines(text, pick, collected))
    try:
        for family in parse(lines):  # the parser only iterates over the lines
            counts = family.type in ("counter", "histogram", "summary")
            for name, labels, value, *_ in family.samples if family.type != "info" else ():
                if not name.endswith("_created") and value is not None:
                    counted = counts and name.endswith(COUNTED)
                    collected.add(name, labels, value, counted, family.name, family.type or "unknown")
    except _FAULTS as error:
        if isinstance(error, ExpositionError):
            raise
        raise ExpositionError(f"it is not in Prometheus' format: {why(error)}") from error
    return collected.exposed()


def _lines(text: str, pick: Pick, collected: _Collected) -> Iterator[str]:
    """Ends after MOST_LINES and the family that has begun there. ExpositionError after LONGEST_READING_S."""
    stems = {_stem(split(wanted).base) for wanted in pick.select}
    until_s = time.thread_time() + LONGEST_READING_S
    taken = 0
    for line in _split(text):
        if taken % 64 == 0 and time.thread_time() > until_s:
            raise ExpositionError(f"reading it took longer than {LONGEST_READING_S:g} s of CPU time")
        begins = line.startswith(TYPE)
        if not line.strip() or (line.startswith("#") and not begins and line != END):
            continue
        if len(line) > LONGEST_LINE:
            collected.leave_out(TOO_LONG, line[:40])
            continue
        name = line.removeprefix(TYPE).partition("{")[0].split(maxsplit=1)  # none if it is in the braces
        family = _stem(name[0]) if name and not name[0].startswith("#") else ""
        if stems and family and family not in stems:
            continue
        if taken >= MOST_LINES and (begins or taken >= 2 * MOST_LINES):
            collected.leave_out(f"are behind line {taken:,}", family)
            yield f"{END}\n"
            return
        taken += 1
        yield f"{line}\n"


def _split(text: str) -> Iterator[str]:
    """Only at line feeds, without a list of them all."""
    return (line.removesuffix("\n").removesuffix("\r") for line in StringIO(text, newline="\n"))


def read_json(data: bytes, pick: Pick = Pick()) -> Exposed:
    """Names are keys joined with dots ("pool.in_use"); places in lists from 0. ExpositionError."""
    try:
        document = parse_json(data)
    except JsonError as error:
        raise ExpositionError(f"it is not JSON: {words(error)}") from error
    if not isinstance(document, dict | list):
        raise ExpositionError("it is JSON, but neither an object nor a list")
    collected = _Collected(pick)
    for number, (path, value) in enumerate(_leaves("", document, collected), start=1):
        if number > MOST_LINES:
            collected.leave_out(f"are behind the first {MOST_LINES:,} numbers", path)
            break
        collected.add(path, {}, value)
    return collected.exposed()


def _leaves(before: str, container: Any, collected: _Collected) -> Iterator[tuple[str, float]]:
    for key, value in container.items() if isinstance(container, dict) else enumerate(container):
        path = f"{before}{key}"
        if is_number(value):
            yield path, value
        elif isinstance(value, dict | list) and len(path) <= LONGEST_NAME:
            yield from _leaves(f"{path}.", value, collected)
        elif isinstance(value, dict | list):
            collected.leave_out(UNUSABLE, path[:LONGEST_NAME])


def read_lines(data: bytes, pick: Pick = Pick()) -> Exposed:
    """ "name value", with labels as in Prometheus, blank lines and comments. ExpositionError for others."""
    collected = _Collected(pick)
    for number, line in enumerate(_split(_text(data)), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if number > MOST_LINES:
            collected.leave_out(f"are behind line {MOST_LINES:,}", line[:40])
            break
        if len(line) > LONGEST_LINE:
            collected.leave_out(TOO_LONG, line[:40])
            continue
        parts = line.split()
        if len(parts) != 2 or (finite(parts[1]) is None and parts[1].lower().lstrip("+-") not in ("nan", "inf")):
            raise ExpositionError(f"line {number} is not a name and a number: {words(line, 80)!r}")
        name = split(parts[0])
        whole = len(str(name)) == len(parts[0])  # otherwise its braces hold something other than labels
        collected.add(name.base if whole else parts[0], dict(name.labels) if whole else {}, float(parts[1]))
    return collected.exposed()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ExpositionError(f"it is not text in UTF-8 ({error.reason} at byte {error.start:,})") from error


class Page:
    """A Prometheus page that is read repeatedly: its lines are split once, and a reading is one conversion per value. A
    change of anything but values causes a full reading."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._heads: list[str] = []
        self._seen = 0
        self._lines: dict[str, int] = {}
        self._counted = frozenset[str]()

    def read(self, data: bytes, *, content_type: str = "") -> Exposed:
        """As `read_prometheus`."""
        plain = "openmetrics" not in content_type and "html" not in content_type
        heads, tails = _parted(data) if plain else ([], [])
        known = bool(heads) and heads == self._heads
        if known and self._lines:
            values = _values(self._lines, tails)
            if values is not None:
                return Exposed(values, self._counted & values.keys())
        exposed = read_prometheus(data, self._pick, content_type=content_type)
        if not known:
            self._heads, self._seen, self._lines = heads, 0, {}
        self._seen += 1
        if self._seen == 2:  # it will come again
            self._learn(exposed, tails)
        return exposed

    def _learn(self, exposed: Exposed, tails: list[str]) -> None:
        """Find the line of each name's value, by reading the same page with line numbers for values. Nothing is learned
        if a line is too long or has more than a name and a value, or if what is left out depends on values."""
        if any(len(head) > LONGEST_LINE - LONGEST_VALUE for head in self._heads):
            return
        parts = enumerate(zip(self._heads, tails, strict=True), FIRST)
        page = "\n".join(f"{head} {number}" if tail else head for number, (head, tail) in parts)
        try:
            numbered = read_prometheus(page.encode(), self._pick)
        except ExpositionError:
            return
        lines = {name: int(value) - FIRST for name, value in numbered.values.items()}
        if not numbered.left_out.keys() <= {UNUSABLE} or any(not 0 <= at < len(tails) for at in lines.values()):
            return
        if _values(lines, tails) == exposed.values:
            self._lines, self._counted = lines, numbered.counted


def _parted(data: bytes) -> tuple[list[str], list[str]]:
    """Each line without its last word, and these words; nothing of invalid or too long text."""
    heads: list[str] = []
    tails: list[str] = []
    if len(data) > LARGEST_PAGE or data.count(b"\n") > MOST_LINES:
        return heads, tails
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return heads, tails
    for line in lines:
        head, _, tail = line.rpartition(" ")
        alone = line.startswith("#") or not head
        heads.append(line if alone else head)
        tails.append("" if alone else tail)
    return heads, tails


def _values(lines: dict[str, int], tails: list[str]) -> dict[str, float] | None:
    values = {}
    try:
        for name, number in lines.items():
            word = tails[number]
            if "_" in word or len(word) > LONGEST_VALUE:
                return None
            value = float(word)
            if -LARGEST < value < LARGEST:
                values[name] = value
    except ValueError:
        return None
    return values
