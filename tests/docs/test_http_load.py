"""The studies of docs/http-load.md are measured, on a shop that has what they ask for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from answering import Sent, said, serving
from forked import forked

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/http-load.md"


def shop(sent: Sent) -> bytes:
    if sent.path == "/login":
        right = sent.method == "POST" and json.loads(sent.body)["password"] == "of the shop"
        return said(b'{"data": {"token": "t1"}}') if right else said(b"", "403 Forbidden")
    if sent.headers.get("authorization") != "Bearer t1":
        return said(b"", "401 Unauthorized")
    if sent.path == "/orders":
        return said(b"{}", "201 Created" if json.loads(sent.body)["item"] == 7 else "400 Bad Request")
    return said(b"%d" % time.monotonic_ns() if sent.path.startswith("/search") else b"tea")


@pytest.mark.long
@pytest.mark.server
def test_the_study_of_the_page_is_measured(
    forking: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    study = re.findall(r"```toml\n(.*?)```", text, re.S)[0].replace('budget = "20s"', 'budget = "5s"')
    (command,) = re.findall(r"```sh\n\.venv/bin/loadframe (measure shop\.toml)\n```", text)
    with serving(shop) as service:
        (tmp_path / "shop.toml").write_text(study.replace("127.0.0.1:8080", service.address))
        done = forked(
            forking,
            [*shlex.split(command), "--json"],
            folder=str(tmp_path),
            said=str(tmp_path),
            environment={"SHOP_PASSWORD": "of the shop"},
        )
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    unchecked = (
        "Of the answers to order no more than the status was checked. Of the answers to GET /items?page=2 no more than "
        "the status and about the size were checked."
    )
    assert unchecked in answer["warnings"]
    assert any(one.startswith("A user thinks for 50 ms on average") for one in answer["warnings"])
    steps = [json.loads(line) for path in tmp_path.glob("runs/*/steps.jsonl") for line in path.read_text().splitlines()]
    assert steps and {step["think_s"] for step in steps} == {0.05}
    assert {one["name"] for step in steps for one in step["operations"]} == {"GET /items?page=2", "search", "order"}
    assert not any(step["errors"] for step in steps)
    assert "of the shop" not in "".join(
        path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()
    )


RECORDED = {
    "replay": ("access.log", "access-log: 120 requests of 3 s are replayed", {"read", "write"}),
    "session": ("shop.har", "har: secrets were dropped: Cookie of 12 requests", {"GET /one", "GET /two"}),
}


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_load_is_measured(name: str, forking: subprocess.Popen[str], tmp_path: Path) -> None:
    file, note, operations = RECORDED[name]
    studies = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (study,) = (each for each in studies if f'name = "{name}"' in each)
    shutil.copy(ROOT / "tests/data/loads" / file, tmp_path)
    with serving(lambda sent: said(b"hello")) as service:
        (tmp_path / "study.toml").write_text(study.replace("127.0.0.1:8080", service.address).replace('"20s"', '"6s"'))
        done = forked(forking, ["measure", "study.toml", "--json"], folder=str(tmp_path), said=str(tmp_path))
    assert done.code == 0, done.err
    warnings = json.loads(done.out)["warnings"]
    assert any(one.startswith(note) for one in warnings), warnings
    assert any("no more than the status was checked" in one for one in warnings)
    steps = [json.loads(line) for path in tmp_path.glob("runs/*/steps.jsonl") for line in path.read_text().splitlines()]
    assert {one["name"] for step in steps for one in step["operations"]} <= operations
    assert {step["closed_loop"] for step in steps} == {name == "session"}
    assert not any(step["errors"] for step in steps)
    assert all((step["think_s"] > 0) == (name == "session") for step in steps)
