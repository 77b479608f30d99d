"""Foreign texts in words that can be shown; and whether a path is text."""

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

MOST = 300
PATH_REMEDY = "Choose a path in plain letters, or a locale of UTF-8 (LC_ALL=C.UTF-8, without PYTHONUTF8=0)."


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
    """An exception's words, or its name where it has none."""
    return words(error) or type(error).__name__


def why_no_text(path: Path) -> str | None:
    """Why a path is not text in UTF-8, in which records and reports must find it again: bytes invalid in, or letters
    beyond, the locale's encoding. None if it is."""
    try:
        whole = str(path.absolute())
    except OSError:  # the working folder is gone
        whole = str(path)
    try:
        whole.encode()
        os.fsencode(whole)
    except UnicodeEncodeError:
        return f"its path {whole!r} is not text in the encoding of file names, {sys.getfilesystemencoding()}"
    return None
