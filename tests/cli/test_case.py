"""`loadframe case run` of several studies: what was reached stands beside an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadframe.cli import case
from loadframe.cli.main import app
from loadframe.errors import Interrupted, LoadframeError, TargetError


@pytest.mark.parametrize(
    ("ends_with", "code", "kind"),
    [(TargetError("the shard is gone"), 1, "TargetError"), (Interrupted("stopped"), 130, "interrupted")],
)
def test_what_one_study_has_found_is_not_lost_with_the_next(
    ends_with: LoadframeError, code: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[dict[str, Any]] = [{"schema": "loadframe.investigation/1", "run": "first"}]

    def carried_out(*_: object, **__: object) -> dict[str, Any]:
        if not outcomes:
            raise ends_with
        return outcomes.pop()

    monkeypatch.setattr(case, "result_of", carried_out)
    monkeypatch.setattr(case, "document", dict)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path))
    done = CliRunner().invoke(app, ["case", "run", "bulk-ingest", "--json"])
    assert done.exit_code == code
    document = json.loads(done.stdout)
    assert (document["schema"], document["kind"]) == ("loadframe.error/1", kind)
    assert document["studies"] == {"sizes": {"schema": "loadframe.investigation/1", "run": "first"}}
