"""What would not start is known before anything is loaded, and whose state it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import loadframe
from loadframe.errors import TargetError
from loadframe.study import parse

STUDY = """
[study]
name = "too-much"
question = "What does it give?"
[target]
kind = "nginx"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
[measure]
warmup = "150ms"
window = "300ms"
budget = "20s"
"""
FIRST, SECOND = 'settings = { tcp_nopush = "on" }', 'settings = { read_ahead = "9000000000G" }'


@pytest.mark.server
@pytest.mark.parametrize("command", [loadframe.compare, loadframe.ladder, loadframe.investigate])
@pytest.mark.extension("loadframe_caches")
def test_an_impossible_state_ends_the_command_before_its_first_step(tmp_path: Path, command: object) -> None:
    table = "change" if command is loadframe.ladder else "alternative"
    tables = "".join(
        f'[[{table}]]\nname = "{name}"\ntarget = {{ {settings} }}\n'
        for name, settings in (("first", FIRST), ("second", SECOND))
    )
    with pytest.raises(TargetError) as caught:
        command(parse(STUDY + tables), tmp_path)  # type: ignore[operator]
    assert caught.value.fact == f"{table} 'second': nginx would not start with read_ahead = {9_000_000_000 << 30}"
    assert '"read_ahead" directive invalid value' in caught.value.details
    (run,) = tmp_path.iterdir()
    assert loadframe.open_run(run).steps() == []
    assert not (run / "changes.jsonl").exists()
