"""A page for Prometheus that is read again and again: from one reading to the next mostly its values differ. Lines are
then taken apart once, and a reading is as many conversions as there are values; what differs elsewhere is read in full.
"""

from __future__ import annotations

from loadframe.formats.exposition import (
    LARGEST,
    LONGEST_LINE,
    MOST_LINES,
    UNUSABLE,
    Exposed,
    ExpositionError,
    Pick,
    read_prometheus,
)

FIRST = 2**40
"""In place of the values: numbers that no page has by chance. Each is exact in a float."""
LONGEST_VALUE = 64
LARGEST_PAGE = 1 << 20
"""Bytes; a larger one, or one of more lines than are read, is read in full each time, and nothing of it is kept."""


class Page:
    """Of one service. pick: as read_prometheus takes it."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._heads: list[str] = []
        self._seen = 0
        self._lines: dict[str, int] = {}
        self._counted = frozenset[str]()

    def read(self, data: bytes, *, content_type: str = "") -> Exposed:
        """What read_prometheus finds; of what is left out only the values are. ExpositionError."""
        plain = "openmetrics" not in content_type and "html" not in content_type
        heads, tails = _parted(data) if plain else ([], [])
        known = bool(heads) and heads == self._heads
        if known and self._lines:
            values = _values(self._lines, tails)
            if values is not None:
                return Exposed(values, self._counted & values.keys())
        found = read_prometheus(data, self._pick, content_type=content_type)
        if not known:
            self._heads, self._seen, self._lines = heads, 0, {}
        self._seen += 1
        if self._seen == 2:  # it will come again
            self._learn(found, tails)
        return found

    def _learn(self, found: Exposed, tails: list[str]) -> None:
        """On which line each name has its value: told by the reader itself, of the same page with line numbers for
        values. Nothing is learned where a line is too long or has more than a name and a value (a time behind it takes
        the number's place), or what is left out depends on values."""
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
        if _values(lines, tails) == found.values:
            self._lines, self._counted = lines, numbered.counted


def _parted(data: bytes) -> tuple[list[str], list[str]]:
    """Each line without its last word, and these words. None of what is no text, or too much."""
    heads: list[str] = []
    tails: list[str] = []
    if len(data) > LARGEST_PAGE or data.count(b"\n") > MOST_LINES:
        return heads, tails
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return heads, tails
    for line in text.split("\n"):
        head, _, tail = line.rpartition(" ")
        alone = line.startswith("#") or not head
        heads.append(line if alone else head)
        tails.append("" if alone else tail)
    return heads, tails


def _values(lines: dict[str, int], tails: list[str]) -> dict[str, float] | None:
    """The values of the names; None where one is none, which the full reading says in words."""
    found = {}
    try:
        for name, number in lines.items():
            word = tails[number]
            if "_" in word or len(word) > LONGEST_VALUE:
                return None
            value = float(word)
            if -LARGEST < value < LARGEST:
                found[name] = value
    except ValueError:
        return None
    return found
