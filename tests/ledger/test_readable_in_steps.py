"""Every rule of the ledger is read from the steps of a study, or says why only `loadframe limits` reads it: a rule that
no step can feed would stand in the table and find nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from loadframe.analysis.window import Summary, summarise
from loadframe.bench import evaluation
from loadframe.experiments.examination import with_memory_at_full
from loadframe.kinds.mysql.attached import AttachedMariadb, AttachedMysql
from loadframe.kinds.mysql.counters import MARIADB as COUNTING
from loadframe.kinds.mysql.kind import MariadbTarget, MysqlTarget
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.kinds.registry import KINDS
from loadframe.kinds.sqlite.kind import SqliteTarget
from loadframe.ledger.reading import derive, read_limits
from loadframe.ledger.rules import RULES, LimitRule
from loadframe.metrics import IN_FRONT
from loadframe.model import Step, TargetState
from loadframe.recording.cage_metrics import AROUND
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.recording.held_files import Descriptors
from loadframe.recording.metrics import window_metrics
from loadframe.recording.readers import RecordingReader
from loadframe.recording.sampling import CgroupFiles, ProcessFiles, SystemFiles
from loadframe.recording.socket_sampling import LOCAL_PORTS
from loadframe.study import Study
from simulated import step

DATA = Path(__file__).parent.parent / "data"
FACTS = Facts(1.0, 100, 2, 4096, boottime_offset_s=0.0, started_s=0.0, started_wall_s=1e9)
OURS = [rule for rule in RULES if rule.id.partition(".")[0] not in KINDS.keys() - KINDS.own.keys()]
SERVERS = (MariadbTarget, MysqlTarget, PostgresTarget, SqliteTarget)
GROUP = {
    "cpu.max": "50000 100000\n",
    "cpu.stat": "usage_usec 10\nnr_periods 10\nnr_throttled 1\nthrottled_usec 10\n",
    "memory.current": "4096\n",
    "memory.max": "1048576\n",
    "memory.events": "max 1\noom_kill 0\n",
    "memory.stat": "workingset_refault_file 1\n",
    "io.stat": "8:0 rbytes=1 wbytes=1 rios=1 wios=1\n",
    "io.max": "8:0 rbps=100 wbps=100 riops=100 wiops=100\n",
    "pids.current": "3\n",
    "pids.max": "10\n",
    "pids.events": "max 1\n",
}
"""A control group with a limit of each sort."""


@pytest.fixture(scope="module")
def metrics_of_steps(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """What a step's metrics can be: of a machine that has everything, with each kind of server."""
    root = tmp_path_factory.mktemp("machine")
    found = dict.fromkeys(recorded(root), 1.0)
    found |= dict.fromkeys((spec.metric for server in SERVERS for spec in server.counter_specs), 1.0)
    study = Study.model_validate(
        {
            "study": {"name": "a", "question": "?"},
            "target": {"kind": "sqlite"},
            "workload": {"kind": "job-queue"},
            "load": {"axis": "concurrency", "levels": [1, 2]},
        }
    )
    found |= evaluation.derived(found, requests(), study, embedded=True, one_lock=True)
    found, _ = derive(found, {})
    return frozenset(found) | at_full(found)


def at_full(metrics: Mapping[str, float]) -> frozenset[str]:
    """What all steps of a state tell together that had several numbers of connections."""
    databases = ("mariadb", "mysql", "postgres")
    growing = {**{f"{kind}.connections": 1.0 for kind in databases}, "target.memory.rss": 2.0**20}
    grown = [{**metrics, **{name: each * count for name, each in growing.items()}} for count in (4, 8, 16)]
    full = {**{f"{kind}.max_connections": 100.0 for kind in databases}, "target.memory.allowed": 2.0**30}
    steps = [step(count, 1.0, {**one, **full}) for count, one in zip((4, 8, 16), grown, strict=True)]
    return frozenset(with_memory_at_full(steps, {})[0].metrics)


def recorded(root: Path) -> frozenset[str]:
    """What the recorder's ticks of such a machine come to, of a target and a driver in cages, in a group of others."""
    lay_machine(root)
    writer = FrameWriter(root / "a.lfr", FACTS)
    process = ProcessFiles(root, "target", 7, writer, Descriptors(), interval_s=1.0)
    groups = ("target", "driver", *IN_FRONT, f"target{AROUND}", f"driver{AROUND}")
    cages = [CgroupFiles(root, component, ("/group",), writer) for component in groups]
    files: list[SystemFiles | ProcessFiles | CgroupFiles] = [SystemFiles(root, writer), process, *cages]
    for at_s in (0.0, 1.0, 2.0):
        stat = f"cpu  {at_s * 100:.0f} 0 0 900 0 0 0 0 0 0\ncpu0 {at_s * 100:.0f} 0 0 900 0 0 0 0 0 0\n"
        (root / "proc/stat").write_text(stat + "ctxt 1\nprocesses 1\nprocs_running 2\nprocs_blocked 0\n")
        writer.begin(at_s, at_s + 1e9)
        for each in files:
            each.sample(at_s)
        writer.put(writer.source(LOCAL_PORTS), b"100\n")  # asked of the kernel, which is no file
        writer.end_record()
    for each in files:
        each.close()
    writer.close()
    with RecordingReader(root / "a.lfr") as reader:
        return frozenset(window_metrics(reader.all_ticks(), 0.0, 2.0))


def lay_machine(root: Path) -> None:
    """Files as a kernel lays them out that has everything; process 7 has one thread and one open file."""
    copies = {
        "proc/{}": ("proc/{}", ("stat", "meminfo", "vmstat", "diskstats", "loadavg")),
        "proc/pressure/{}": ("proc/pressure-{}", ("cpu", "io", "memory")),
        "proc/net/{}": ("ledger/proc/42/net/{}", ("dev", "netstat", "sockstat")),
        "proc/sys/fs/{}": ("proc/{}", ("file-nr",)),
        "proc/7/{}": ("proc/process-{}", ("stat", "status", "io", "limits")),
        "proc/7/task/7/{}": ("proc/process-{}", ("stat", "status", "schedstat")),
        "proc/self/{}": ("proc/process-{}", ("stat", "schedstat")),
    }
    texts = {
        to.format(name): (DATA / here.format(name)).read_text()
        for to, (here, names) in copies.items()
        for name in names
    }
    texts |= {"proc/7/fd/0": "", "proc/7/task/7/wchan": "futex_wait"}
    texts |= {
        "proc/net/snmp": "Tcp: RetransSegs\nTcp: 7\n",
        "proc/sys/net/ipv4/ip_local_port_range": "32768 60999\n",
        "proc/interrupts": "     CPU0\nTLB:    1   TLB shootdowns\n",
    }
    texts |= {f"group/{name}": text for name, text in GROUP.items()}
    for cpu in ("cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count"):
        texts[f"sys/devices/system/cpu/cpu0/{cpu}"] = "1000000\n"
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def requests() -> Summary:
    none = np.zeros(500, np.uint32)
    return summarise(
        np.linspace(1.0, 2.0, 500),
        np.ones(500, np.float32),
        np.zeros(500, np.float32),
        none,
        none,
        operations=("a",),
        judged=("a",),
        planned_s=None,
        floor_s=0.1,
        fixed_warmup_s=None,
    )


def lacking(rule: LimitRule, metrics: frozenset[str]) -> set[str]:
    """What a rule needs and no step has."""
    needed = {rule.use, rule.ceiling, rule.thrash, rule.errors} - {None, "one"}
    return {name for name in needed if name is not None} - metrics


@pytest.mark.parametrize("rule", OURS, ids=lambda rule: rule.id)
def test_a_rule_is_readable_in_steps_or_says_why_not(rule: LimitRule, metrics_of_steps: frozenset[str]) -> None:
    if not rule.now_only:
        assert not lacking(rule, metrics_of_steps), "record it, or say in now_only why not"


def test_of_steps_the_ledger_reads_all_others_and_none_of_these(
    make_step: Callable[..., Step], metrics_of_steps: frozenset[str]
) -> None:
    steps = with_memory_at_full([make_step(1.0, 1.0, dict.fromkeys(metrics_of_steps, 1.0))], {})
    read = {series.limit.id for series in read_limits(steps, TargetState(), {})}
    assert read == {rule.id for rule in OURS if not rule.now_only and not rule.pressure}
    everything = {name: 1.0 for rule in RULES for name in (rule.use, rule.ceiling)}
    assert not {series.limit.id for series in read_limits([make_step(1.0, 1.0, everything)], TargetState(), {})} & {
        rule.id for rule in RULES if rule.now_only
    }


def test_a_mariadb_is_asked_the_same_whether_it_is_ours_or_not() -> None:
    assert AttachedMariadb.counter_specs == MariadbTarget.counter_specs
    assert AttachedMysql.counter_specs == MysqlTarget.counter_specs


def test_how_full_the_redo_log_is_follows_from_its_age() -> None:
    told = {"Innodb_checkpoint_age": "30", "Innodb_checkpoint_max_age": "120", "Questions": "7", "Uptime": "long"}
    expected = {"Innodb_checkpoint_age": 30.0, "Innodb_checkpoint_max_age": 120.0, "Questions": 7.0, "redo_fill": 0.25}
    assert COUNTING.counted(told) == expected
    assert "redo_fill" not in COUNTING.counted({"Questions": "7"})
