"""Name patterns as find -name has them (fnmatch(3) in the C locale: byte by byte), over names that are bytes."""

from __future__ import annotations

import re

from loadframe.errors import StudyError

_SPECIAL = re.compile(rb"[*?\[\\]")


def matcher(glob: bytes) -> re.Pattern[bytes]:
    """Use its `fullmatch`. StudyError for classes such as [:alpha:], which depend on the locale."""
    pieces, at = [b""], 0  # what stands between stars
    while at < len(glob):
        byte = glob[at : at + 1]
        at += 1
        if byte == b"*":
            pieces.append(b"")
        elif byte == b"?":
            pieces[-1] += b"."
        elif byte == b"\\" and at < len(glob):
            pieces[-1] += re.escape(glob[at : at + 1])
            at += 1
        elif byte == b"[" and (end := _end(glob, at)) > 0:
            pieces[-1] += _bracket(glob[at:end])
            at = end + 1
        else:
            pieces[-1] += re.escape(byte)
    first, *others = pieces
    if not others:
        return re.compile(first, re.DOTALL)
    # Each piece where it comes first, for good: a pattern with many stars takes no longer (as fnmatch.translate).
    between = b"".join(b"(?>.*?" + piece + b")" for piece in others[:-1] if piece)
    return re.compile(first + between + b".*" + others[-1], re.DOTALL)


def longest_literal(glob: bytes) -> bytes:
    """Bytes that every name has that matches: the database looks for them first. b"" where there are none."""
    return b"" if b"[" in glob or b"\\" in glob else max(_SPECIAL.split(glob), key=len)


def _end(glob: bytes, at: int) -> int:
    """Where the bracket that begins before `at` ends; -1 where it does not, and is a bracket that a name has."""
    first = at + 1 if glob[at : at + 1] in (b"!", b"^") else at
    return glob.find(b"]", first + 1)


def _bracket(inside: bytes) -> bytes:
    if re.search(rb"\[[:.=]", inside) or b"\\" in inside:
        raise StudyError(
            f"The name pattern has [{inside.decode('utf-8', 'backslashreplace')}], which depends on the locale",
            remedy="Name the bytes or ranges of them, for instance [a-z0-9].",
        )
    negated, inside = (b"^", inside[1:]) if inside[:1] in (b"!", b"^") else (b"", inside)
    parts: list[bytes] = []
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == b"-" and at + 2 < len(inside):
            if inside[at] <= inside[at + 2]:
                parts.append(re.escape(inside[at : at + 1]) + b"-" + re.escape(inside[at + 2 : at + 3]))
            at += 3
        else:
            parts.append(re.escape(inside[at : at + 1]))
            at += 1
    if not parts:
        return b"." if negated else b"(?!)"
    return b"[" + negated + b"".join(parts) + b"]"
