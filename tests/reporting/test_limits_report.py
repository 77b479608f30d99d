"""The ledger now, for people and programs: what is urgent first, chains as chains, and every reason told."""

from __future__ import annotations

import json
import math

import pytest

from loadframe.model import LedgerNow, Limit, LimitStatus, Saturation, UnreadLimit
from loadframe.reporting.json_shapes import ledger_json
from loadframe.reporting.limits_report import chains, render_limits


def limit(
    name: str,
    use: float,
    ceiling: float,
    status: LimitStatus,
    *,
    chain: tuple[str, ...] = (),
    exhausted_at: Saturation | None = None,
    configured: float | None = None,
    harm: float | None = None,
    loud: bool = False,
) -> Limit:
    return Limit(
        id=name,
        layer="server",
        ceiling=ceiling,
        configured=configured,
        effective=ceiling,
        use=use,
        headroom=ceiling - use,
        loud=loud,
        source="a manual",
        exhausted_at=exhausted_at,
        unit="count",
        chain=chain,
        use_metric="mariadb.open_tables",
        thrash_metric="mariadb.opened_tables",
        title=f"the thing called {name}",
        harm=harm,
        status=status,
    )


CACHE = limit("cache", 64, 64, "reached", chain=("files", "kernel"), configured=12000, harm=120.5)
AHEAD = Saturation(80, 75, 86, "extrapolated", "line")
FILES = limit("files", 245, 1024, "free", chain=("kernel",), loud=True, exhausted_at=AHEAD)
KERNEL = limit("kernel", 245, 1048576, "free")
GROUP = limit("group", 1, math.inf, "unlimited")
PORTS = limit("ports", 1, 28232, "free")


@pytest.fixture
def now() -> LedgerNow:
    unread = (
        UnreadLimit("swap", "hardware", "swap space", "this machine has no swap", "proc(5)"),
        UnreadLimit("link", "hardware", "the link", "not permitted to read it; run as root", "sysfs"),
    )
    cuts = ("table_open_cache: 12000 was asked for, the target uses 64",)
    return LedgerNow(
        "MariaDB 1 (pid 7)", 20.0, 21, (CACHE, FILES, PORTS, KERNEL, GROUP), unread, cuts, ("it was idle",)
    )


def test_what_is_urgent_comes_first_with_its_cost_and_its_date(now: LedgerNow) -> None:
    text = render_limits(now)
    lines, said = text.splitlines(), " ".join(text.split())
    assert lines[0] == "Limits of MariaDB 1 (pid 7), read 21 times within 20 s"
    assert lines[3].startswith("  - reached: cache: 64 of 64 (12,000 asked for) (100 %), when full: silent; the thing")
    assert "; 120/s " in said[: said.index("runs out: files")]
    assert "- runs out: files: 245 of 1,024 (24 %), when full: errors; full in 80 s (75 s to 86 s); the thing" in said
    rows = [line for line in lines if line.startswith(("  ports ", "  kernel ", "  group "))]
    assert len(rows) == 2 and all(row.endswith("silent") for row in rows)
    assert text.index("reached: cache") < text.index("runs out: files") < text.index("ports")


def test_what_is_full_and_costs_nothing_says_so() -> None:
    warm = limit("pool", 64, 64, "reached", harm=0.0)
    text = render_limits(LedgerNow("a server", 1.0, 2, (warm, CACHE), ()))
    assert "- full: pool: 64 of 64 (100 %), costs nothing; " in text
    assert ledger_json(LedgerNow("a server", 1.0, 2, (warm,), ()))["limits"][0]["status"] == "reached"
    for costly in (limit("loud", 64, 64, "reached", harm=0.0, loud=True), limit("unread", 64, 64, "reached")):
        assert "- reached: " in render_limits(LedgerNow("a server", 1.0, 2, (costly,), ()))


def test_chains_are_shown_once_from_their_head(now: LedgerNow) -> None:
    assert chains(now.limits) == [("cache", "files", "kernel")]
    assert "cache 64 <- files 1,024 <- kernel 1,048,576" in render_limits(now)


def test_a_link_that_was_not_read_is_passed_over() -> None:
    assert chains((CACHE, KERNEL)) == [("cache", "kernel")]
    assert chains((CACHE,)) == []


def test_cuts_reasons_and_warnings_are_told(now: LedgerNow) -> None:
    text = render_limits(now)
    for words in (*now.clamped, *now.warnings, "swap: this machine has no swap", "link: not permitted", "group"):
        assert words in text


def test_nothing_urgent_is_said(now: LedgerNow) -> None:
    quiet = LedgerNow("this machine", 1.0, 2, (PORTS,), ())
    assert "None is reached or near." in render_limits(quiet)


def test_programs_read_strict_json(now: LedgerNow) -> None:
    shape = ledger_json(now)
    assert json.loads(json.dumps(shape, allow_nan=False)) == shape
    assert shape["schema"] == "loadframe.limits/1"
    by_id = {one["id"]: one for one in shape["limits"]}
    promised = {
        "id",
        "layer",
        "ceiling",
        "configured",
        "effective",
        "use",
        "headroom",
        "loud",
        "source",
        "exhausted_at",
    }
    assert all(one.keys() >= promised for one in shape["limits"])
    ahead = {"load": 80, "low": 75, "high": 86, "how": "extrapolated", "method": "line"}
    assert by_id["files"]["exhausted_at"] == ahead
    assert shape["axis"] == "seconds from now"
    assert by_id["group"]["ceiling"] is None
    assert [one["id"] for one in shape["unread"]] == ["swap", "link"]
    assert shape["chains"] == [["cache", "files", "kernel"]]


def test_lines_are_no_longer_than_asked(now: LedgerNow) -> None:
    assert max(len(line) for line in render_limits(now, width=80).splitlines()) <= 80
