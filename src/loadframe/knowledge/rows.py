"""How files of rows are read; and two forms: a rule for a limit, and the class of work of functions."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

Row = TypeVar("Row")
AT_HOME_ELSEWHERE: Mapping[str, str] = {"mariadb": "mysql"}
CLASSES: Mapping[str, str] = {
    "running": "running or waiting for a CPU",
    "lock": "locks",
    "condition": "waiting for another thread's signal",
    "reclaim": "memory reclaim and swapping",
    "fault": "page faults",
    "copy": "copying memory",
    "io": "disk I/O and fsync",
    "files": "file system and page cache",
    "network": "network and sockets",
    "timer": "sleeping in a timer",
    "scheduling": "switching threads",
    "allocation": "memory allocation",
    "collecting": "collecting garbage",
    "process": "starting and ending processes",
    "kernel": "other work of the kernel",
    "user": "the program's own code",
    "waiting": "waiting for something else",
}
"""The last three are for stacks that match no row."""
LAYERS = ("server", "application")
LAYER_OF = {name: name for name in ("process", "user", "cgroup", "network", "kernel")} | {
    "cage": "process",
    **dict.fromkeys(("memory", "cpu", "disk"), "hardware"),
}
"""By the first part of its id, the layer of a limit whose row names none; else the server."""
Scope = Literal["kernel", "user"]


def toml_rows(file: Path) -> dict[str, Any]:
    """With tuples for lists, as records have them."""
    return _parsed(file.read_text(encoding="utf-8", errors="strict"))


def _parsed(text: str, **words: str) -> dict[str, Any]:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return {name: _with_tuples(value) for name, value in tomllib.loads(text).items()}


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_tuples(inner) for name, inner in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def documents(file: Path, **words: str) -> list[tuple[str, dict[str, Any]]]:
    """As `toml_rows`, with `{word}` replaced by `words` and by the file's [words]. A file that several kinds of server
    share: once for each, with its [words.KIND] and `{kind}` replaced. With each: how the names of its rows begin, ""
    for all."""
    text = file.read_text(encoding="utf-8", errors="strict")
    named: dict[str, Any] = _parsed(text).get("words", {})
    kinds = {kind: own for kind, own in named.items() if isinstance(own, dict)}
    words |= {name: word for name, word in named.items() if isinstance(word, str)}
    if not kinds:
        return [("", _parsed(text, **words))]
    return [(f"{kind}.", _parsed(text, kind=kind, **own)) for kind, own in kinds.items()]


def row_of(form: Callable[..., Row], name: str, columns: Mapping[str, Any]) -> Row:
    """ValueError, with its name, for an unknown column."""
    try:
        return form(**columns)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def metric_rows(file: Path) -> str:
    """name | unit | what | source. Of a file that several kinds of server share, the rows of each."""
    rows, home = file.read_text(encoding="utf-8", errors="strict").splitlines(), file.parent.name
    if home not in AT_HOME_ELSEWHERE.values():
        return "\n".join(rows)
    kinds = (*(kind for kind, other in AT_HOME_ELSEWHERE.items() if other == home), home)
    return "\n".join(row.format(kind=kind) for kind in kinds for row in rows if row.startswith(("{kind}.", f"{kind}.")))


@dataclass(frozen=True, slots=True)
class FrameRow:
    """Functions of one class. scope: where they run. pattern: of whole names. source: where they are defined."""

    class_id: str
    scope: Scope
    pattern: str
    source: str


def frame_rows(file: Path) -> tuple[FrameRow, ...]:
    return tuple(
        FrameRow(row["class"], row["scope"], re.sub(r"\n *", "", "|".join(row["functions"])), row["source"])
        for row in toml_rows(file)["frame"]
    )


@dataclass(frozen=True, slots=True)
class LimitRule:
    """docs/ledger.md explains the columns. unit: as in units.py. ceiling: "" with `most`."""

    id: str
    title: str
    use: str
    ceiling: str
    source: str
    layer: str = "server"
    unit: str = "count"
    loud: bool = False
    use_now: str | None = None
    configured: str | None = None
    thrash: str | None = None
    errors: str | None = None
    chain: tuple[str, ...] = ()
    near: float | None = None
    near_use: float | None = None
    pressure: bool = False
    on_harm: Literal["", "near", "reached"] = ""
    now_only: str = ""
    most: float | None = None
    waits: bool = False

    @property
    def use_at_this_moment(self) -> str:
        return self.use_now or self.use


def limit_rules(file: Path, **words: str) -> tuple[LimitRule, ...]:
    """Rows, each a table named by its id. Without a `ceiling` it is the metric USE.limit; the unit of a use with the
    ceiling "one" is "share". words: for `{word}`. ValueError for an unknown column."""
    limits = []
    for kind, tables in documents(file, **words):
        tables.pop("words", None)
        for name, row in tables.items():
            if name.startswith(kind):
                implied = {
                    "layer": LAYER_OF.get(name.partition(".")[0], "server"),
                    "ceiling": f"{row.get('use')}.limit",
                    "unit": "share" if row.get("ceiling") == "one" else "count",
                }
                limits.append(row_of(LimitRule, name, {"id": name, **implied, **row}))
    return tuple(limits)
