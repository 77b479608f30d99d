"""What earlier versions wrote is read for ever: run folders, the days of a watch, a change that a killed command left.
The files in data/frozen and data/runs are never written again (SHA256SUMS); what they say is golden."""

import hashlib
import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loadframe
from loadframe.bench import places
from loadframe.changes import host, lists
from loadframe.cli.common import document
from loadframe.host import identity
from loadframe_watch.days import lines, observed

DATA = Path(__file__).parent / "data"
FROZEN, RUNS, GOLDEN = DATA / "frozen", DATA / "runs", DATA / "case-studies"
SUMS = FROZEN / "SHA256SUMS"


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Where two JSON values differ; numbers by more than what another processor or library rounds."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if name in before and name in after:
                yield from differences(before[name], after[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}: {'gone' if name in before else 'new'}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (first, second) in enumerate(zip(before, after, strict=True)):
            yield from differences(first, second, f"{where}[{number}]")
    elif isinstance(before, float) and isinstance(after, float):
        if not math.isclose(before, after, rel_tol=1e-6, abs_tol=1e-12):
            yield f"{where}: {before} became {after}"
    elif before != after:
        yield f"{where}: {before!r} became {after!r}"


def golden(name: str, now: dict[str, Any]) -> list[str]:
    """How it differs from the golden one; UPDATE_GOLDEN=1 writes that again."""
    file = GOLDEN / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        rows = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(now.items()))
        file.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return list(differences(json.loads(file.read_text()), json.loads(json.dumps(now))))


def test_what_is_frozen_is_as_it_was_written() -> None:
    files = sorted(path for top in (FROZEN, RUNS) for path in top.rglob("*") if path.is_file() and path != SUMS)
    now = {str(path.relative_to(DATA)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert now == {name: digest for digest, name in (line.split("  ") for line in SUMS.read_text().splitlines())}


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.iterdir()))
def test_a_run_folder_gives_the_case_study_that_it_gave(name: str, tmp_path: Path) -> None:
    answer = loadframe.conclude(loadframe.open_run(Path(shutil.copytree(RUNS / name, tmp_path / name)))).answer
    assert answer is not None
    said = document(answer)
    assert golden(name, {key: value for key, value in said.items() if key not in ("run", "report")}) == []


def test_days_of_a_watch_give_what_they_gave() -> None:
    """Two compacted days, and one whose last line is torn."""
    table = observed(FROZEN / "watch", every_s=3600.0)
    columns = {"load": table.load, "throughput": table.throughput, "response_s": table.response_s, **table.use}
    kinds = Counter(line.kind for line in lines(FROZEN / "watch"))
    assert golden("a-watch", {"lines": dict(kinds), "time_s": table.time_s, "columns": columns}) == []


def test_a_change_that_a_killed_command_left_is_reverted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    root, vm = tmp_path / "machine", tmp_path / "machine/proc/sys/vm"
    monkeypatch.setattr(host, "ROOT", root)
    vm.mkdir(parents=True)
    for name, value in (("dirty_ratio", "5"), ("dirty_bytes", "0"), ("swappiness", "1")):
        (vm / name).write_text(f"{value}\n")
    here = {
        "@host@": identity.host_name(), "@machine@": identity.machine(), "@boot@": identity.boot_id(),
        "@net@": identity.namespace("net"), "@mnt@": identity.namespace("mnt"), "@root@": str(root),
        "@namespace@": identity.own().namespace,
    }  # fmt: skip
    (frozen,) = (FROZEN / "changes").glob("*.json")
    text = frozen.read_text()
    for name, value in here.items():
        text = text.replace(json.dumps(name), json.dumps(value))
    (tmp_path / "state/changes").mkdir(parents=True, mode=0o700)
    (tmp_path / "state/changes" / frozen.name).write_text(text)
    outcomes = places.revert()
    assert [(outcome.setting, outcome.status) for outcome in outcomes] == [
        ("vm.swappiness", "reverted"),
        ("vm.dirty_ratio", "reverted"),
    ]
    assert ((vm / "dirty_ratio").read_text().strip(), (vm / "swappiness").read_text().strip()) == ("20", "60")
    assert lists.read() == []
