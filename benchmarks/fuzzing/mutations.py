"""Valid input made hostile: at the level of bytes, lines, tokens, and of keys and values of JSON and TOML."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

HUGE = "9" * 5000
NASTY_TEXT = (
    "", " ", "0", "-0", "-0.0", "1", "-1", "2", "65536", "4294967296", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "1e308", "-1e308", "1e400", "1e-320", "5e-324", "nan", "NaN", "inf", "-inf", "Infinity",
    "1" + "0" * 400, HUGE, "0." + "0" * 400 + "1", "1_000", "0x10", "1,5", "١٢", "²", "½", "true", "null", "None",
    "\x00", "a\x00b", "\x1b[2J", "\x1b]0;x\x07", "\x7f", "\x85", "\x9b2J", "\u2028", "\u2029", "\ufeff", "\u202e",
    "\ufffd", "\U0001f600", "é" * 300, "[/x]", "[bold red]", "[link=file:///etc/passwd]", "{{ 7*7 }}", "{% x %}",
    "<script>alert(1)</script>", "</script><b>", "'\"><img src=x onerror=x>", "../../x", "/", "/dev/zero", "/dev/null",
    "/dev/full", "/proc/self/mem", "/nonexistent/x", "~", "$HOME", "`id`", "; id", "%s%n", "{0.__class__}", "\\", '"',
    "'", '"""', "a" * 5000, "a b", "a=b", "#", "-", "1..2", "a..b", "127.0.0.1:0", "[::1]:99999",
    "2020-01-01", "1979-05-27T07:32:00Z", "07:32:00", "1 s", "1e400s", HUGE + "s", "0s", "-1s", "1e9h", HUGE + "TiB",
    "0-99999999", "5-1", "0,,1", "0-" + HUGE, "A", "B", "Z" * 40, "%", "100%", HUGE + "%",
)  # fmt: skip
"""As words of any text."""
NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**19, 10**30, 10**400, 0.0,
    -0.0, 0.5, 1e-320, 1e15, 1e300, 1.7e308, -1e308, float("nan"), float("inf"), float("-inf"), [], {}, [[]], [None],
    {"": ""}, ["x"], {"a": {"b": {}}}, *NASTY_TEXT,
)  # fmt: skip
"""As values of JSON and TOML; json.dumps writes NaN and Infinity, which is what a broken program would write."""


MILD: tuple[Any, ...] = (
    0, 1, 2, 3, 8, 64, 1000, 4096, 0.5, 0.05, 1.5, "1", "0", "1s", "500ms", "300ms", "2m", "64MiB", "1GiB", "40MB/s",
    "0", "0-1", "50%", "on", "off", "wal", "keep", "relax", "auto", "off", "target", "host", "linear", "geometric",
    "sqlite", "mariadb", "postgres", "nginx", "nginx-cache", "squid", "varnish", "bulk-loader", "url", "job-queue",
    "oltp", "sysbench", "pgbench", "http", "bulk-ingest", "render-farm", "render-farm-burst", "concurrency", "rate",
    "active_jobs", "threads", "clients", "working_set", "/", "/ /a", "128M", "4GB", "delete", "none", True, False,
    [1, 2, 4], [1], ["target"], {"from": 1, "to": 8, "count": 3}, {"min": 2, "max": 2}, {"latency_p95_ms": 50},
)  # fmt: skip
"""As values that may be right, so that what comes after the first check is reached too."""


def nested(opening: str, closing: str, depth: int, middle: str = "0") -> str:
    return opening * depth + middle + closing * depth


def mutate_text(rng: random.Random, text: str) -> bytes:
    """One to four mutations of text in UTF-8, each at a level of its own."""
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(TEXT_LEVELS)(rng, data)
    return data


def _bytes_level(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return rng.randbytes(rng.randrange(40))
    at, length = rng.randrange(len(data)), rng.choice((1, 1, 2, 8, 64))
    match rng.randrange(6):
        case 0:
            return data[:at] + rng.randbytes(length) + data[at + length :]
        case 1:
            return data[:at] + data[at + length :]
        case 2:
            return data[:at] + data[at : at + length] * rng.choice((2, 3, 100)) + data[at + length :]
        case 3:
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case 4:
            return data[:at]
    return data[:at] + rng.choice((b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\r", b"\n", b"\t")) + data[at:]


def _lines_level(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        case 2:
            rng.shuffle(lines)
        case 3:
            lines[at] = _word(rng)
        case 4:
            lines = lines[:at] + [lines[at]] * rng.choice((3, 200)) + lines[at:]
    return b"\n".join(lines)


def _tokens_level(rng: random.Random, data: bytes) -> bytes:
    tokens = list(re.finditer(rb"[\w.+-]+|\"[^\"\n]*\"", data))
    if not tokens:
        return data + _word(rng)
    token = rng.choice(tokens)
    inside = token[0].startswith(b'"') and rng.random() < 0.7
    word = b'"' + _word(rng) + b'"' if inside else _word(rng)
    return data[: token.start()] + word + data[token.end() :]


def _whole_level(rng: random.Random, data: bytes) -> bytes:
    match rng.randrange(8):
        case 0:
            return b"\xef\xbb\xbf" + data
        case 1:
            return data.replace(b"\n", b"\r\n")
        case 2:
            return data.decode("utf-8", "replace").encode("utf-16")
        case 3:
            return b""
        case 4:
            return data + b"\n" + b"a" * rng.choice((10_000, 200_000)) + b"\n"
        case 5:
            return data.replace(b"\n", b"\r")
        case 6:
            return data + data
    return data.replace(b",", rng.choice((b";", b"\t", b",,")))


TEXT_LEVELS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _bytes_level, _bytes_level, _lines_level, _lines_level, _tokens_level, _tokens_level, _tokens_level, _whole_level,
)  # fmt: skip


def _word(rng: random.Random) -> bytes:
    return rng.choice(NASTY_TEXT).encode("utf-8", "surrogatepass")


def nasty(rng: random.Random) -> Any:
    """A value that no program writes, and some that one does."""
    return copy.deepcopy(rng.choice(MILD if rng.random() < 0.4 else NASTY_VALUES))


def mutate_tree(rng: random.Random, tree: Any) -> Any:
    """Tables and lists with one to three keys or values replaced, removed, renamed, doubled or wrapped."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(tree)
        if not places:
            return nasty(rng)
        holder, key = rng.choice(places)
        _mutate_place(rng, holder, key)
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        found += [(each, key) for key in keys]
        waiting += [each[key] for key in keys if isinstance(each[key], dict | list)]
    return found


def _mutate_place(rng: random.Random, holder: Any, key: Any) -> None:
    value = holder[key]
    match rng.randrange(10):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(NASTY_TEXT) or key] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[rng.choice(NASTY_TEXT)] = nasty(rng)
        case 3:
            holder[key] = [value] * rng.choice((0, 1, 2, 300))
        case 4:
            holder[key] = {rng.choice(NASTY_TEXT): value}
        case 5 if isinstance(value, int | float) and not isinstance(value, bool):
            holder[key] = (value if abs(value) < 1e300 else 1) * rng.choice((-1, 0, 10, 1e6, 1e-9, 0.999))
        case 6:
            holder[key] = str(value)
        case _:
            holder[key] = nasty(rng)


def as_json(rng: random.Random, tree: Any) -> str:
    """A tree as JSON text. Now and then a number of it is one that only text can say."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5, default=str)
    match rng.randrange(20):
        case 0:
            return text.replace("0", "1e400", 1)
        case 1:
            return re.sub(r"\d+", HUGE, text, count=1)
        case 2:
            return text.replace("null", nested("[", "]", 3000), 1).replace("{}", nested('{"a":', "}", 3000), 1)
        case 3:
            return text.replace('"', '"\\ud800', 1)
    return text


def as_toml(value: Any) -> str:
    """Any value as TOML, right or wrong: what TOML has no words for is written as it comes."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "9" * 5000 if isinstance(value, int) and abs(value) > 10**300 else repr(value)
        case str():
            return '"' + "".join(_toml_character(one) for one in value) + '"'
        case list():
            return "[" + ", ".join(map(as_toml, value)) + "]"
        case dict():
            return "{ " + ", ".join(f"{as_toml(str(key))} = {as_toml(item)}" for key, item in value.items()) + " }"
    return str(value)


def _toml_character(one: str) -> str:
    if one in '"\\':
        return "\\" + one
    return one if one >= " " and one != "\x7f" else f"\\u{ord(one):04x}"


def toml_file(tree: dict[str, Any]) -> str:
    """A study's tables as a file: the first level with headings, and the rest inline."""
    lines: list[str] = []
    later: list[str] = []
    for name, table in tree.items():
        bare = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)
        if isinstance(table, dict):
            later.append(f"[{bare}]")
            later += [f"{as_toml(str(key))} = {as_toml(value)}" for key, value in table.items()]
        elif isinstance(table, list) and table and all(isinstance(each, dict) for each in table):
            for each in table:
                later.append(f"[[{bare}]]")
                later += [f"{as_toml(str(key))} = {as_toml(value)}" for key, value in each.items()]
        else:
            lines.append(f"{bare} = {as_toml(table)}")
    return "\n".join([*lines, *later]) + "\n"
