"""A ladder in words, as JSON, and as a page with its waterfall."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from loadframe.model import (
    Change,
    Compared,
    CpuUse,
    Decision,
    Host,
    Interaction,
    Ladder,
    LevelRatio,
    Rung,
    RunQuality,
    StateUse,
    StudySummary,
    Verdict,
)
from loadframe.reporting.json_shapes import ladder_json
from loadframe.reporting.ladder_report import answer, fate
from loadframe.reporting.reports import render_page, render_text


def verdict(ratio: float, low: float, high: float, decision: Decision = "better") -> Verdict:
    return Verdict(ratio, low, high, decision, 5, "made up", levels=(8.0,))


def tried(ratio: float, low: float, high: float, decision: Decision = "better") -> Compared:
    return Compared(verdict=verdict(ratio, low, high, decision))


def setting(name: str, before: int | None, after: int) -> tuple[Change, ...]:
    return (Change("server", name, before, after),)


POOL = Rung(
    "pool",
    setting("innodb_buffer_pool_size", 8, 64),
    kept=True,
    comparison=Compared(verdict=verdict(3.1, 2.0, 4.8), fresh=verdict(3.0, 2.6, 3.5)),
    share=math.log(3) / math.log(4.5),
    at_top=verdict(4.0, 3.5, 4.6),
)
LARGER = Rung(
    "larger-pool",
    setting("innodb_buffer_pool_size", 64, 128),
    kept=True,
    comparison=Compared(verdict=verdict(1.6, 1.3, 1.9), fresh=verdict(1.5, 1.4, 1.6)),
    share=math.log(1.5) / math.log(4.5),
    at_top=verdict(1.5, 1.4, 1.6),
    gives_up="fsync = off: the last second <may> be lost",
)
APART = Rung(
    "apart", (Change("process", "cage.cpus", None, "0"),), kept=False, comparison=tried(0.62, 0.5, 0.8, "worse")
)
NOTHING = Rung(
    "nothing", setting("query_cache", 0, 64), kept=False, comparison=tried(1.02, 0.9, 1.15, "no-proven-difference")
)
REFUSED = Rung("refused", setting("impossible", None, 1), kept=False, refused="it would not start")

LOADS = (LevelRatio(4.0, 100, 410, 4.1, 3.6, 4.7), LevelRatio(8.0, 100, 490, 4.9, 4.3, 5.6))
FOUND = Ladder(
    run="runs/1",
    report="runs/1/report.html",
    study=StudySummary(
        "oltp", "Which change <gives> what?", "mariadb", "MariaDB 10.11", "sysbench", "threads", "threads", (8.0,), "",
        "relax", {},
    ),
    host=Host("here", "6.1", "cpu", 2, 2**32, ""),
    rungs=(POOL, LARGER, APART, NOTHING, REFUSED),
    total=Compared(verdict=verdict(4.5, 3.9, 5.2), levels=LOADS),
    interactions=(Interaction("pool", "larger-pool", verdict(1.33, 1.2, 1.5)),),
    keeps_all=False,
    finished=True,
    quality=RunQuality(50, 1, {"stranger": 2}, 0.01, 2**24, 100, 0, 90.0),
    seconds=90.0,
    warnings=("One thing was not measured.",),
)  # fmt: skip


def test_the_text_says_the_answer_each_change_and_what_to_copy() -> None:
    text = render_text(FOUND, details=True)
    flat = " ".join(text.split())
    assert flat.startswith("Set pool and larger-pool: 4.5x at 8 threads.")
    assert "The largest share, 73 %, is that of pool." in flat
    for words in (
        "apart 0.6 times (0.5 to 0.8) worse: reverted",
        "no proven difference: reverted",
    ):
        assert words in flat
    for words in (
        "does not work with refused: it would not start",
        "With larger-pool, pool is worth 1.3 times",
        "the last second <may> be lost",
        "runs/1",
    ):
        assert words in flat
    assert "cage.cpus" not in text
    copied = render_text(replace(FOUND, to_copy=("[mariadbd]", "innodb_buffer_pool_size = 128")))
    assert "To copy:\n  [mariadbd]\n  innodb_buffer_pool_size = 128\n" in copied
    assert len(copied.splitlines()) <= 25


def test_the_diff_goes_from_the_start_to_the_top() -> None:
    assert FOUND.net_changes == (Change("server", "innodb_buffer_pool_size", 8, 128),)


def test_the_json_has_the_promised_shape() -> None:
    shape = ladder_json(FOUND)
    json.dumps(shape, allow_nan=False)
    assert shape["schema"] == "loadframe.ladder/1"
    assert shape["order"] == ["pool", "larger-pool", "apart", "nothing", "refused"]
    assert shape["kept"] == ["pool", "larger-pool"]
    pool, _, apart, _, refused = shape["steps"]
    assert (pool["ratio"], pool["low"], pool["high"]) == (3.0, 2.6, 3.5), "in the blocks of the whole"
    assert (apart["ratio"], apart["share"], apart["decision"]) == (0.62, None, "worse")
    assert (refused["ratio"], refused["refused"]) == (None, "it would not start")
    assert sum(step["share"] or 0 for step in shape["steps"]) == pytest.approx(1)
    assert shape["total"]["low"] == 3.9
    assert [(row["load"], row["ratio"]) for row in shape["levels"]] == [(4, 4.1), (8, 4.9)]
    assert "At each load: 4.1x (3.6 to 4.7) at 4 threads, 4.9x (4.3 to 5.6) at 8" in " ".join(
        render_text(FOUND).split()
    )
    interval = {"ratio": 4.0, "low": 3.5, "high": 4.6, "decision": "better", "confidence": 0.95}
    assert shape["leave_one_out"][0] == {"change": "pool", **interval}
    assert shape["interactions"][0]["partner"] == "larger-pool"


def test_a_ladder_on_which_nothing_was_kept_or_that_was_stopped_says_so() -> None:
    none = replace(FOUND, rungs=(APART, NOTHING), total=None, interactions=())
    assert "None of the 2 changes is proven to be better" in answer(none)
    assert ladder_json(none)["total"] is None
    stopped = replace(FOUND, rungs=(POOL,), total=None, finished=False)
    assert answer(stopped).startswith("Stopped after 1 change")
    assert "Better until then: pool" in answer(stopped)


@pytest.mark.parametrize(
    ("rung", "keeps_all", "words"),
    [
        (POOL, False, "kept"),
        (APART, False, "worse: reverted"),
        (NOTHING, False, "no proven difference: reverted"),
        (REFUSED, False, "refused by the target"),
        (replace(APART, kept=True), True, "kept anyway: worse"),
        (replace(POOL, comparison=NOTHING.comparison), False, "kept: not proven again"),
    ],
)
def test_what_became_of_a_change(rung: Rung, keeps_all: bool, words: str) -> None:
    assert fate(rung, keeps_all=keeps_all) == words


def test_the_page_stands_alone_and_shows_the_waterfall() -> None:
    page = render_page(FOUND)
    assert 'id="chart-waterfall"' in page and "<svg" in page
    assert "Which change &lt;gives&gt; what?" in page
    assert "<ins>+ innodb_buffer_pool_size = 128</ins>" in page
    assert "src=" not in page and "https://" not in page.replace("https://vega.github.io", "")
    spec = page.split('id="spec-waterfall">')[1].split("</script>")[0]
    rows = next(iter(json.loads(spec)["datasets"].values()))
    bars = {row["change"]: (row["from"], row["to"], row["kind"]) for row in rows}
    assert bars["larger-pool"] == (pytest.approx(3.0), pytest.approx(4.5), "step")
    assert bars["apart"] == (pytest.approx(4.5), pytest.approx(4.5 * 0.62), "reverted")
    assert bars["nothing"][0] == pytest.approx(4.5), "what was reverted is not climbed on"
    assert bars["together"] == (1.0, pytest.approx(4.5), "total")
    assert "refused" not in bars


def test_a_page_of_a_stopped_ladder_has_no_chart() -> None:
    page = render_page(replace(FOUND, rungs=(), total=None, finished=False, quality=None))
    assert "chart-waterfall" not in page


def use(state: str, thread: float, *, busy: float = 0.5, of: float = 2.0, cores: float = 1.0) -> StateUse:
    """sql1 has the busiest thread."""
    threads = (CpuUse("sql1", thread, 1.0), CpuUse("driver", 0.03, 1.0))
    return StateUse(state, 8.0, 340.0, 4, threads, (CpuUse("main", 0.12, 1.0),), (CpuUse("sql1", cores, of),), busy)


def test_the_busiest_thread_is_named_before_and_after_and_whether_it_is_at_its_limit() -> None:
    top = "pool + larger-pool"
    found = replace(FOUND, cpu_use=(use("", 0.96), use("pool", 0.5), use(top, 0.3, cores=1.9)))
    text = " ".join(render_text(found, details=True).split())
    assert "At the start the busiest thread is one of sql1 (0.96 of one CPU; the busiest kind is" in text
    assert "main 0.12): it is at the limit of a single CPU." in text
    assert "With all that is kept the busiest thread is one of sql1 (0.30" in text
    assert "the CPUs that it may use are full for sql1 (1.90 of 2)." in text
    page = render_page(found)
    assert "The busiest threads" in page
    assert "at the limit of a single CPU" in page
    (first, *_) = ladder_json(found)["cpu_use"]
    assert first["threads"][0] == {"name": "sql1", "cores": 0.96, "of": 1.0}


def test_where_nothing_is_kept_the_threads_of_what_was_tried_are_told() -> None:
    rungs = tuple(replace(rung, kept=False) for rung in FOUND.rungs)
    states = (use("", 0.2, busy=0.93), use("pool", 0.25), use("apart", 0.15))
    found = replace(FOUND, rungs=rungs, total=None, interactions=(), cpu_use=states)
    text = " ".join(render_text(found, details=True).split())
    assert "so no thread is at its limit: the machine's CPUs are, 93 % busy." in text
    assert "In the states that were tried and reverted it is one of sql1, with 0.15 to 0.25 of one CPU." in text
    beside = replace(found, cpu_use=(replace(states[0], others=0.25),))
    assert "93 % busy, 25 % by programs outside the study." in " ".join(render_text(beside, details=True).split())
    assert "neither a thread nor the CPUs are at their limit (the machine's are 60 % busy)." in " ".join(
        render_text(replace(found, cpu_use=(use("", 0.2, busy=0.6),)), details=True).split()
    )


def test_the_governor_is_told_also_where_there_is_none() -> None:
    assert "none that could be set on this machine" in render_page(FOUND)
    host = replace(FOUND.host, facts={"governor": "powersave"})
    page = render_page(replace(FOUND, host=host))
    assert "<dd>powersave</dd>" in page
    assert "none that could be set" not in page
