"""One setting of MySQL Cluster: what it may be, and how config.ini writes it."""

import re
from dataclasses import dataclass
from typing import Literal

from loadframe.formats.plain_numbers import whole

NodeValue = int | bool | str
Type = Literal["integer", "bytes", "boolean", "word", "text", "cpus"]
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
TRUE = frozenset({"Y", "y", "Yes", "YES", "yes", "True", "TRUE", "true", "1"})
FALSE = frozenset({"N", "n", "No", "NO", "no", "False", "FALSE", "false", "0"})
LARGEST_CPU = 65535


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in one kind of section.

    low, high: bounds of a number, None where none are known. choices: the words or numbers allowed, where they are
    listed. default: None where there is none. unit: of a number, "" for a count. restart: what has to be restarted
    for a new value, a key of settings.RESTARTS. takes: the memory or disk space that its value takes. first: what has
    to be as this needs it, so that it can have its value, or an effect. deprecated: it is still read. gives_up: what
    may be lost with values other than the default, or than `safe` ones.
    """

    section: str
    name: str
    type: Type
    low: int | None
    high: int | None
    choices: tuple[str, ...]
    unit: str
    default: NodeValue | None
    restart: str
    deprecated: bool
    source: str
    takes: str = ""
    gives_up: str | None = None
    safe: range = range(0)
    first: str = ""

    def read(self, text: str) -> NodeValue:
        """A value as config.ini writes it. ValueError says what would be right."""
        match self.type:
            case "boolean":
                if text not in TRUE | FALSE:
                    raise ValueError("1 or 0, Y or N, true or false")
                return text in TRUE
            case "integer" | "bytes":
                return self._number(text)
            case "word":
                if (choice := next((one for one in self.choices if one.lower() == text.lower()), None)) is None:
                    raise ValueError(f"one of {', '.join(self.choices)}")
                return choice
            case "cpus":
                read_cpus(text)
        return text

    def weakens(self, value: NodeValue) -> bool:
        """Whether this value gives up what `gives_up` says."""
        return self.gives_up is not None and value not in (self.safe or (self.default,))

    def range_words(self) -> str:
        """Its values, in words: "2 to 72", "1M to 16384G", "Default, Disabled, WaitExternal"; "" for any text."""
        match self.type:
            case "boolean":
                return "true, false"
            case "cpus":
                return "CPU numbers such as 0-3,6"
        if self.choices:
            return ", ".join(self.choices)
        if self.low is None or self.high is None:
            return "" if self.type == "text" else "a number"
        return f"{self.show(self.low)} to {self.show(self.high)}"

    def show(self, value: NodeValue) -> str:
        """A value as config.ini writes it; bytes with the largest unit that leaves nothing over."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.type != "bytes" or not isinstance(value, int) or not value:
            return str(value)
        unit = next(unit for unit, factor in reversed(UNITS.items()) if value % factor == 0)
        return f"{value // UNITS[unit]}{unit}"

    def _number(self, text: str) -> int:
        # ndb_mgmd passes over what comes after the unit ("16MB"), and knows k but neither m nor g
        written = re.fullmatch(r"([0-9]+)\s*(?:([kKMG])\w*)?", text)
        count = whole(written[1]) if written else None
        number = None if written is None or count is None else count * UNITS[(written[2] or "").upper()]
        if self.choices and str(number) not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}")
        if number is None:
            raise ValueError("a whole number, perhaps with K, M or G behind it (capitals)")
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            raise ValueError(f"{self.range_words()}{' ' * bool(self.unit)}{self.unit}")
        return number


def read_cpus(text: str) -> frozenset[int]:
    """CPU numbers from a list such as "0-3, 6". ValueError for anything else, and for numbers above 65535."""
    cpus: set[int] = set()
    for part in text.split(","):
        span = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        first, last = (whole(span[1]), whole(span[2] or span[1])) if span else (1, 0)
        if first is None or last is None or first > last:
            raise ValueError("CPU numbers such as 0-3,6")
        if last > LARGEST_CPU:
            raise ValueError(f"CPU numbers up to {LARGEST_CPU}")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)
