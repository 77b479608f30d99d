"""Rows of kinds that other distributions register are taken as they are, or refused in words with their package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.diagnosis.mechanism import TRACES
from loadframe.diagnosis.remedies import BUILDERS
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.errors import OutsideFault
from loadframe.kinds import registry
from loadframe.knowledge.kinds import FOLDER, OURS, TABLES, Home, homes
from loadframe.knowledge.remedy import Situation
from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe.model import TargetState

TOY = Path(__file__).parents[1] / "data/outside"
METRIC_ROWS = """
ROWS = \"\"\"
toy.used | count | slots in use
toy.slots | count | slots
toy.waited | 1/s | requests that waited
toy.share | share | of them
\"\"\"
"""
METRIC_PAGE = f"""
from loadframe.knowledge.metric import Derived, requests, share
{METRIC_ROWS}
IN_FRONT = ("toy-gate",)
DERIVED = (Derived("toy.share", ("toy.waited", "throughput"), share),)
AGREEMENTS = (requests("toy.waited", also=("toy.",)),)
"""
LIMIT_PAGE = """
from loadframe.knowledge.rows import LimitRule
SLOTS = LimitRule(id="toy.slots", title="slots", use="toy.used", ceiling="toy.slots", source="its manual", loud=False)
LIMITS = (SLOTS,)
"""
SIGNATURE_PAGE = """
from loadframe.knowledge.signature import Condition, Rank, Signature, Trace
WAITS = Condition("toy.waited", ">=", 0.5, "half", per_request=True)
SIGNATURES = (Signature("toy.slots", "slots", (WAITS,), (), "They wait.", Rank.WORKERS),)
TRACES = {"toy.slots": Trace("toy.waited")}
RULED_OUT_BY = {"cpu.hot_thread": (WAITS,)}
"""
REMEDY_PAGE = """
from loadframe.model import Change, Price, Remedy
def more(situation):
    change = Change("server", "slots", 1, situation.effective["slots"])
    return Remedy("toy.more", "more slots", ("toy.slots", "cpu.saturated"), (change,), Price())
BUILDERS = {"toy.slots": (more,), "cpu.saturated": (more,)}
"""
FRAME_PAGE = """
from loadframe.knowledge.rows import FrameRow
FRAMES = (FrameRow("lock", "user", "toy_wait.*", "its source"),)
"""
PAGES = {
    "metrics": METRIC_PAGE,
    "limits": LIMIT_PAGE,
    "signatures": SIGNATURE_PAGE,
    "remedies": REMEDY_PAGE,
    "frames": FRAME_PAGE,
}


def install(folder: Path, pages: dict[str, str], name: str = "lf_toy", kinds: tuple[str, ...] = ("toy",)) -> None:
    """A distribution whose package has these pages, and a module of its entry points that must not be imported."""
    info, package = folder / f"{name}-1.5.dist-info", folder / name
    info.mkdir()
    package.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(
        "[loadframe.kinds]\n" + "".join(f"{kind} = {name}.kind:KIND\n" for kind in kinds)
    )
    for page, text in {"__init__": "", "kind": "raise SystemExit('it touches the server')", **pages}.items():
        (package / f"{page}.py").write_text(text)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; modules from it are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def found(distribution: str = "lf_toy 1.5") -> Home:
    (home,) = (one for one in homes() if one.distribution == distribution)
    return home


def situation(kind: str) -> Situation:
    return Situation(kind, TargetState(), {"slots": 8}, {}, {})


def test_every_table_of_every_page_is_taken_and_the_kind_itself_not_imported(path: Path) -> None:
    install(path, PAGES)
    home = found()
    assert home.flaw is None
    assert home.tables.keys() == TABLES.keys()
    assert home.kinds == ("toy",)
    assert "lf_toy.limits" in sys.modules and "lf_toy.kind" not in sys.modules


def test_a_package_without_pages_or_that_does_not_load_has_no_rows(path: Path) -> None:
    install(path, {})
    assert found().flaw is None and not found().tables
    install(path, {**PAGES, "__init__": "1 / 0"}, "lf_other", ("other",))
    assert found("lf_other 1.5").flaw is None, "that its entry point does not load is told of that"


WRONG = {
    "a page that does not load": ("limits", "1 / 0", "its limits.py does not load: ZeroDivisionError"),
    "a page that ends the command": ("frames", "raise SystemExit('no')", "its frames.py does not load: SystemExit: no"),
    "a table that is none": ("limits", "LIMITS = 3", "LIMITS is 3, which is not a tuple"),
    "a row that is none": ("limits", "LIMITS = ('toy.slots',)", "LIMITS[0] is 'toy.slots', which is not a LimitRule"),
    "a field of another type": (
        "limits",
        LIMIT_PAGE.replace("False", "0"),
        "LIMITS[0] (toy.slots): loud is 0, which is not a bool",
    ),
    "a number that is none": (
        "signatures",
        SIGNATURE_PAGE.replace("0.5", "float('nan')"),
        "(toy.waited): threshold is nan, not a finite number",
    ),
    "a word of another list": (
        "signatures",
        SIGNATURE_PAGE.replace('">="', '"=="'),
        "comparison is '==', not one of >=, <=, >, <",
    ),
    "a limit of ours": (
        "limits",
        LIMIT_PAGE.replace('id="toy.slots"', 'id="process.open_files"'),
        "LIMITS (process.open_files): 'process.open_files' must begin with 'toy.'",
    ),
    "a limit twice": ("limits", LIMIT_PAGE + "LIMITS *= 2", "LIMITS (toy.slots) is there twice"),
    "a layer of ours": (
        "limits",
        LIMIT_PAGE.replace("loud=False", "layer='kernel'"),
        "layer is 'kernel', not one of server, application",
    ),
    "a limit of every server": (
        "limits",
        LIMIT_PAGE.replace('use="toy.used", ceiling="toy.slots"', 'use="target.open_files", ceiling="one"'),
        "otherwise the row holds for every server",
    ),
    "a metric that nobody counts": (
        "limits",
        LIMIT_PAGE.replace("toy.used", "toy.usde"),
        "LIMITS (toy.slots): the metric 'toy.usde' is not in its metrics.py: ROWS",
    ),
    "a metric of ours": (
        "metrics",
        METRIC_PAGE.replace("toy.used", "system.memory.used"),
        "'system.memory.used' must begin with 'toy.'",
    ),
    "a metric of another kind": ("metrics", METRIC_PAGE.replace("toy.used", "nginx.used"), "'nginx.used' must begin"),
    "a metric twice": ("metrics", METRIC_PAGE.replace("toy.used", "toy.slots"), "is there twice"),
    "a metric without words": (
        "metrics",
        METRIC_PAGE.replace("| slots in use", ""),
        "'toy.used | count' is not `name | unit | what`",
    ),
    "what follows for every server": (
        "metrics",
        METRIC_PAGE.replace('("toy.waited", "throughput")', '("system.cpu.busy_cores", "throughput")'),
        "DERIVED (toy.share): needs must begin with 'toy.'",
    ),
    "an agreement about ours": (
        "metrics",
        METRIC_PAGE.replace('also=("toy.",)', 'also=("system.disk.",)'),
        "'system.disk.' must begin with 'toy.'",
    ),
    "a component of ours": ("metrics", METRIC_PAGE.replace("toy-gate", "shard3"), "cannot begin with 'shard3'"),
    "a signature of every server": (
        "signatures",
        SIGNATURE_PAGE.replace('"toy.waited", ">="', '"system.cpu.utilization", ">="'),
        "the first metric of present must begin with 'toy.'",
    ),
    "a signature of ours": (
        "signatures",
        SIGNATURE_PAGE.replace('Signature("toy.slots"', 'Signature("cpu.saturated"'),
        "SIGNATURES (cpu.saturated): 'cpu.saturated' must begin with 'toy.'",
    ),
    "a signature of nothing": (
        "signatures",
        SIGNATURE_PAGE.replace("(WAITS,), ()", "(), ()"),
        "present has no condition",
    ),
    "a trace of ours": (
        "signatures",
        SIGNATURE_PAGE.replace('{"toy.slots": Trace', '{"disk.fsync": Trace'),
        "TRACES['disk.fsync']: 'disk.fsync' must begin with 'toy.'",
    ),
    "what rules out by a metric of ours": (
        "signatures",
        SIGNATURE_PAGE.replace("(WAITS,)}", '(Condition("system.cpu.utilization", ">=", 0, "always"),)}'),
        "RULED_OUT_BY['cpu.hot_thread']: 'system.cpu.utilization' must begin with 'toy.'",
    ),
    "a remedy that cannot be called": (
        "remedies",
        "BUILDERS = {'toy.slots': ('more',)}",
        "BUILDERS['toy.slots'][0] is 'more', which cannot be called",
    ),
    "remedies by no name": ("remedies", "BUILDERS = {3: ()}", "BUILDERS has the key 3, which is not a str"),
    "a class of work that is none": (
        "frames",
        FRAME_PAGE.replace('"lock"', '"waits"'),
        "FRAMES (toy_wait.*): class_id is 'waits', not one of running, lock",
    ),
    "a pattern that is none": ("frames", FRAME_PAGE.replace("toy_wait.*", "toy_("), "pattern is no regular expression"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_row_that_cannot_be_used_is_told_of_and_no_other_is_used(path: Path, what: str) -> None:
    page, text, said = WRONG[what]
    assert text != PAGES[page], "the row is another one"
    install(path, {**PAGES, page: text})
    home = found()
    assert home.flaw is not None
    assert f"its {page}.py" in home.flaw.fact or "its rows" in home.flaw.fact
    assert said in home.flaw.fact
    assert "uninstall it" in home.flaw.remedy
    assert not home.tables


def test_a_kind_called_like_something_of_ours_has_no_rows(path: Path) -> None:
    install(path, {page: text.replace("toy.", "system.") for page, text in PAGES.items()}, kinds=("system",))
    flaw = found().flaw
    assert flaw is not None and "cannot begin with 'system'" in flaw.fact


def test_of_two_that_have_one_name_the_first_is_used(path: Path) -> None:
    install(path, {page: text.replace("toy.", "a_b.") for page, text in PAGES.items()}, "lf_first", ("a-b",))
    install(path, {"metrics": "ROWS = 'a_b.more | count | more'"}, "lf_second", ("a_b",))
    assert found("lf_first 1.5").flaw is None
    flaw = found("lf_second 1.5").flaw
    assert flaw is not None and "'a_b' are those of lf_first 1.5" in flaw.fact and "Uninstall one" in flaw.remedy


def test_its_remedies_are_for_its_own_kinds_alone(path: Path) -> None:
    install(path, PAGES, kinds=("toy", "toy-cache"))
    (build,) = found().tables["remedies", "BUILDERS"]["cpu.saturated"]
    assert build(situation("mariadb")) is None
    for kind in ("toy", "toy-cache"):
        made = build(situation(kind))
        assert made is not None and made.changes[0].after == 8


def test_a_remedy_that_is_none_is_its_authors_fault(path: Path) -> None:
    install(path, {**PAGES, "remedies": REMEDY_PAGE.replace('("toy.slots", "cpu.saturated")', '"toy.slots"')})
    (build,) = found().tables["remedies", "BUILDERS"]["toy.slots"]
    with pytest.raises(OutsideFault, match=r"lf_toy 1\.5: the remedy that lf_toy\.remedies\.more made .*addresses"):
        build(situation("toy"))


def test_all_names_of_ours_are_kept_from_others() -> None:
    """So that a row of theirs never means what one of ours does, also one that comes tomorrow."""
    names = {*METRICS, *BUILDERS, *TRACES, *(rule.id for rule in RULES), *(one.id for one in SIGNATURES)}
    firsts = {name.partition(".")[0] for name in names}
    folders = {each.parent.name for each in FOLDER.glob("*/kind.py")}
    theirs = {beginning for home in homes() for beginning in home.beginnings}
    names_of_ours = (firsts | folders | set(registry.KINDS.own)) - theirs
    assert {first for first in names_of_ours if not first.startswith("shard")} <= OURS


def test_the_reasoning_rooms_have_its_rows_and_nothing_that_touches_its_server(tmp_path: Path) -> None:
    info = tmp_path / "loadframe_toy-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loadframe_toy\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text("[loadframe.kinds]\ntoy = loadframe_toy.kind:KIND\n")
    program = """
import sys
from loadframe.diagnosis import findings, mechanism, remedies
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.ledger.reading import DERIVED
from loadframe.ledger.rules import KIND_OF, RULES
from loadframe.metrics import METRICS
from loadframe.metrics.agreements import OF_SERVERS
assert "toy.slots" in {one.id for one in SIGNATURES} and "toy.slots" in {rule.id for rule in RULES}
assert "toy.slots" in mechanism.TRACES and remedies.BUILDERS["toy.slots"] and KIND_OF["toy.slots"] == "toy"
assert METRICS["toy.waited"].unit == "1/s" and "toy.waited_share" in {one.metric for one in DERIVED}
assert ("toy.requests",) in {one.counter for one in OF_SERVERS}
print(*sorted(name for name in sys.modules if name.startswith("loadframe_toy.")))
print(*sys.modules)
"""
    path = ":".join(filter(None, (str(tmp_path), str(TOY), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs, loaded = done.stdout.splitlines()
    assert theirs.split() == [f"loadframe_toy.{page}" for page in ("limits", "metrics", "remedies", "signatures")]
    assert not {"loadframe.host", "loadframe.kinds.base", "loadframe.workloads"} & set(loaded.split())
