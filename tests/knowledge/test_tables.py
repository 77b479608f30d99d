"""What each kind of server brings is in the central tables, in the order it always had, and touches nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from alone import OF_ALL
from loadframe.analysis.stacks import ROWS as FRAMES
from loadframe.diagnosis.mechanism import TRACES
from loadframe.diagnosis.remedies import BUILDERS
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.knowledge.kinds import FOLDER, IN_FILES, Page, homes, rows, tables
from loadframe.knowledge.metric import Agreement, Derived
from loadframe.knowledge.rows import FrameRow, LimitRule
from loadframe.knowledge.signature import Condition, Signature, Trace
from loadframe.ledger.reading import DERIVED
from loadframe.ledger.rules import KIND_OF, RULES
from loadframe.metrics import IN_FRONT, METRICS
from loadframe.metrics.agreements import OF_CONNECTIONS, OF_SERVERS
from sources import EXTENSIONS

RECORDED = json.loads((Path(__file__).parents[1] / "data/knowledge.json").read_text())
"""As the tables were when each was still one file. What is new may stand anywhere between; nothing may move, or end."""
PAGES = sorted(
    f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/*.py") if path.stem in get_args(Page)
)  # the files themselves, without what knowledge.kinds makes of them
WITH_KINDS = {home.package: home.kinds[0] for home in homes()}
"""Packages of extensions, and the names under which their rows are."""
OF_EXTENSIONS = sorted(
    f"{package}.{page}"
    for package in WITH_KINDS
    for page in get_args(Page)
    for extension in EXTENSIONS
    if (extension / "src" / package.replace(".", "/") / f"{page}.py").exists()
)
WRITTEN_WITH = {"catalogue"}
"""What pages take from beside them: the form of rows of settings."""
ROWS: Mapping[type, Any] = {
    LimitRule: RULES,
    Derived: DERIVED,
    Agreement: (*OF_SERVERS, *OF_CONNECTIONS),
    Signature: SIGNATURES,
    FrameRow: FRAMES,
}


FILES = sorted(
    f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/*.toml") if path.stem in {page for page, _ in IN_FILES}
)


def _those_recorded(now: list[Any], recorded: list[Any]) -> list[Any]:
    return [each for each in now if each in recorded]


@OF_ALL
def test_signatures_keep_their_order() -> None:
    """Where two hold alike the earlier one comes first: another order would be another diagnosis."""
    now = [[one.id, *(condition.metric for condition in one.present)] for one in SIGNATURES]
    assert _those_recorded(now, RECORDED["signatures"]) == RECORDED["signatures"]


@OF_ALL
def test_limits_keep_their_order() -> None:
    assert _those_recorded([rule.id for rule in RULES], RECORDED["limits"]) == RECORDED["limits"]


@OF_ALL
def test_metrics_keep_their_names_and_units() -> None:
    """Run folders name them."""
    recorded = RECORDED["metrics"]
    assert {name: METRICS[name].unit for name in recorded if name in METRICS} == recorded
    assert {f"shard16{name[6:]}" for name in recorded if name.startswith("loader.")} <= METRICS.keys()


@pytest.mark.parametrize("module", [*(f"loadframe.kinds.{page}" for page in PAGES), *OF_EXTENSIONS])
def test_all_that_a_page_has_is_in_the_tables(module: str) -> None:
    """A table under a name that nobody asks for would be lost in silence."""
    seen = 0
    for name, table in vars(import_module(module)).items():
        if not name.isupper() or not isinstance(table, tuple | Mapping):
            continue
        for key, row in table.items() if isinstance(table, Mapping) else enumerate(table):
            for form in (form for form in ROWS if isinstance(row, form)):
                assert row in ROWS[form], (name, row)
                seen += 1
            if isinstance(row, Trace):
                assert TRACES[key] is row, (name, key)
            if isinstance(row, tuple) and all(callable(build) for build in row):
                assert set(row) <= {getattr(build, "__wrapped__", build) for build in BUILDERS[key]}, (name, key)
                seen += 1
            if isinstance(row, tuple) and all(isinstance(one, Condition) for one in row):
                assert all(set(row) <= set(one.absent) for one in SIGNATURES if one.id == key), (name, key)
                assert key in {one.id for one in SIGNATURES}, (name, key)
    assert seen or module.endswith(".metrics"), module


@pytest.mark.extension("loadframe_bulk")
def test_every_kind_that_has_rows_is_found() -> None:
    found = {kind for page in get_args(Page) for kind in _kinds_with(page)}
    others = {WITH_KINDS[name.rpartition(".")[0]] for name in OF_EXTENSIONS}
    assert found == {page.partition(".")[0] for page in (*PAGES, *FILES)} | others
    assert {"mysql", "sqlite", "bulk-loader"} <= found


def _kinds_with(page: Page) -> set[str]:
    names = {"metrics": ("ROWS", "IN_FRONT"), "remedies": ("BUILDERS",)}.get(page, (page.upper(),))
    return {kind for name in names for kind in tables(page, name, object)}


def test_metrics_are_called_after_the_kind_that_counts_them() -> None:
    for kind, text in tables("metrics", "ROWS", str).items():
        of_kinds = {"mysql": {"mysql", "mariadb"}}.get(kind, {kind})
        assert {row.partition(".")[0] for row in text.strip().splitlines()} == of_kinds


@pytest.mark.extension("loadframe_bulk", "loadframe_ndb")
def test_a_component_in_front_of_shards_has_metrics_and_a_cage() -> None:
    assert IN_FRONT == ("loader", "management", "sql1", "sql2", "sql3", "sql4")
    for component in IN_FRONT:
        assert {f"{component}.cpu.cores", f"{component}.cage.cpu"} <= METRICS.keys()
        assert f"cage.{component}.cpu_quota" in BUILDERS


def test_a_rule_is_known_by_the_kind_that_brought_it() -> None:
    assert KIND_OF["lock.writer"] == "sqlite"
    assert all(kind == name.partition(".")[0] for name, kind in KIND_OF.items() if name != "lock.writer")


def test_what_is_no_such_row_is_refused() -> None:
    with pytest.raises(TypeError, match=r"kinds\.mysql\.limits\.LIMITS has .* which is not a Signature"):
        rows("limits", "LIMITS", Signature)
    with pytest.raises(TypeError, match=r"kinds\.mysql\.limits\.LIMITS is a tuple, not a str"):
        tables("limits", "LIMITS", str)


def test_the_tables_are_put_together_without_what_touches_a_server() -> None:
    """They find the pages by name, which no contract of imports can see."""
    program = (
        "import sys, loadframe.analysis.stacks, loadframe.metrics.agreements, loadframe.ledger.rules, "
        "loadframe.diagnosis.findings, loadframe.diagnosis.mechanism, loadframe.diagnosis.remedies; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("loadframe.")]
    of_kinds = {name.removeprefix("loadframe.kinds.") for name in loaded if name.startswith("loadframe.kinds.")}
    pages = {*PAGES, *(page.partition(".")[0] for page in PAGES)}
    assert pages <= of_kinds <= pages | WRITTEN_WITH
    rooms = {name.split(".")[1] for name in loaded}
    assert not rooms & {"host", "cages", "recording", "changes", "workloads", "runs", "study", "bench", "address"}
