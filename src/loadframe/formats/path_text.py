"""Paths as text: records and reports hold them in UTF-8, and must find them again."""

import os
import sys
from pathlib import Path

REMEDY = "Choose a path in plain letters, or a locale of UTF-8 (LC_ALL=C.UTF-8, without PYTHONUTF8=0)."


def why_no_text(path: Path) -> str | None:
    """Why a path is not text: bytes invalid in, or letters beyond, the locale's encoding; None if it is."""
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
