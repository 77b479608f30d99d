"""Results of searches for settings, for tests of what shows them."""

from __future__ import annotations

from dataclasses import replace

from loadframe.model import Host, LevelRatio, RunQuality, StudySummary, Verdict
from loadframe_tune.model import SettingWorth, TunedSetting, Tuning, TuningProof, TuningTrial

POOL, INDEX = "innodb_buffer_pool_size", "innodb_adaptive_hash_index"
PROOF = TuningProof(
    {POOL: 1 << 30, "innodb_flush_log_at_trx_commit": 2},
    1.8,
    verdict=Verdict(2.1, 1.5, 2.9, "better", 3, "paired", (1.9, 2.1, 2.3), (4.0, 8.0), may_overstate=True),
    fresh=Verdict(1.75, 1.6, 1.9, "better", 4, "paired", (1.7, 1.8, 1.7, 1.8), (4.0, 8.0)),
    levels=(LevelRatio(4, 1000, 1750, 1.75, 1.6, 1.9),),
)
FOUND = Tuning(
    end="gained",
    axis="concurrency",
    axis_unit="threads",
    target_kind="mariadb",
    settings=(
        TunedSetting(POOL, 1 << 27, (1 << 27, 1 << 30), 1 << 30, restart=True),
        TunedSetting("innodb_flush_log_at_trx_commit", 1, (0, 1, 2), 2, restart=False, gives_up="a second of commits"),
        TunedSetting(INDEX, False, (False, True), False, restart=False),
    ),
    trials=(
        TuningTrial(1, "diagnosis", {POOL: 1 << 30}, {4.0: 1900.0, 8.0: 2100.0}, 1.9, steps=(9, 10)),
        TuningTrial(2, "search", {INDEX: True}, {8.0: 600.0}, 0.6, ended_early=True, steps=(11,)),
        TuningTrial(3, "search", {POOL: 1 << 40}, {}, None, failed="the server will not start"),
        TuningTrial(4, "again", {POOL: 1 << 30}, {4.0: 1800.0, 8.0: 2000.0}, 1.8, steps=(12, 13)),
    ),
    expected=1.8,
    proof=PROOF,
    left_out={"innodb_doublewrite": "every other value gives up durability"},
    file_name="tuned.cnf",
    file_text=f"[mariadbd]\n{POOL} = 1073741824\ninnodb_flush_log_at_trx_commit = 2\n",
    run="runs/1",
    warnings=("One step was disturbed.",),
)


STUDY = StudySummary(
    "oltp", "Which settings <serve> more?", "mariadb", "MariaDB 10.11", "sysbench", "threads", "threads", (4.0, 8.0),
    "throughput", "relax", {},
)  # fmt: skip
WRITTEN = replace(
    FOUND,
    settings=(replace(FOUND.settings[0], worth=SettingWorth(1 << 30, 1.8, 1.5, 2.1)), *FOUND.settings[1:]),
    study=STUDY,
    host=Host("here", "6.1", "cpu", 2, 2**32, ""),
    quality=RunQuality(50, 1, {"stranger": 2}, 0.01, 2**24, 100, 0, 90.0),
    report="runs/1/report.html",
)
