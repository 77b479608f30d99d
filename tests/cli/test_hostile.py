"""What the fuzzer has found (benchmarks/fuzz.py), in its smallest form: refused in words, soon. A row of
tests/data/hostile.json has the command line and its files, and an extension that it needs; REPEAT:TEXT:COUNT stands for
so many times this text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    pytest.param(row, marks=pytest.mark.extension(*row.get("extensions", ())))
    for row in json.loads((Path(__file__).parents[1] / "data/hostile.json").read_text())
]


def written_out(text: str) -> str:
    return re.sub(r"REPEAT:(.*?):(\d+)", lambda found: found[1] * int(found[2]), text, flags=re.S)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['arguments'][0]}: {row['why']}")
def test_what_was_a_traceback_or_took_minutes_is_refused(
    loadframe: Callable[..., Any], tmp_path: Path, row: dict[str, Any]
) -> None:
    for name, text in row.get("files", {}).items():
        path = tmp_path / name
        for folder in reversed([*path.relative_to(tmp_path).parents][:-1]):
            (tmp_path / folder).mkdir(mode=0o700, exist_ok=True)
        path.write_text(written_out(text))
    (tmp_path / "state").mkdir(mode=0o700, exist_ok=True)
    for name, place in row.get("links", {}).items():
        (tmp_path / name).symlink_to(place)
    result = loadframe(*map(written_out, row["arguments"]), LOADFRAME_STATE=str(tmp_path / "state"))
    assert result.code == row["code"], result.err
    assert row["says"] in result.out + result.err
    assert "Loadframe has a bug" not in result.err
    assert len(result.err) < 20_000
