"""What a server or another program has said, as words that can be shown."""

from collections.abc import Sequence
from difflib import get_close_matches

MOST = 300


def words(text: object, most: int = MOST) -> str:
    """One line of printable characters, at most `most`: others (escape sequences) are shown as \\x1b."""
    line = " ".join(str(text)[: 4 * most].split())
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line[: most + 1])
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question that ends in a blank if one of the known words is close, else ""."""
    close = get_close_matches(word, known, n=1)
    return f"Did you mean {close[0]!r}? " if close else ""


def why(error: Exception) -> str:
    """The words of an exception, or its name where it has none."""
    return words(error) or type(error).__name__
