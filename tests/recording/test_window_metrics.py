"""The metrics of a window are what the counters say, worked out by hand; what cannot be known is absent."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.metrics import is_known
from loadframe.model import CounterSpec
from loadframe.recording.frames import TASK, Facts, Tick
from loadframe.recording.metrics import Stall, read_specs, specs_text, stalls, window_metrics
from loadframe.recording.socket_rows import ROW

FACTS = Facts(1.0, 100, 2, 4096, boottime_offset_s=5.0, started_s=0.0, started_wall_s=1e9)
S, D, R = "S", "D", "R"


def sample(at_s: float, entries: Mapping[str, bytes]) -> Tick:
    return Tick(at_s, at_s + 1e9, entries, FACTS)


def note(at_s: float, text: str) -> Tick:
    return Tick(at_s, at_s + 1e9, {"note:service": text.encode()}, FACTS, sample=False)


def stat_text(user: int, idle: int, steal: int = 0, running: int = 1, created: int = 0) -> bytes:
    """/proc/stat of two CPUs, the first of which does all the work."""
    half = (user + idle + steal) // 2
    lines = [
        f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0",
        f"cpu0 {user} 0 0 {half - user} 0 0 0 0 0 0",
        f"cpu1 0 0 0 {half - steal} 0 0 0 {steal} 0 0",
        f"ctxt {created * 10}\nprocesses {created}\nprocs_running {running}\nprocs_blocked 2",
    ]
    return "\n".join(lines).encode() + b"\n"


def process_text(
    pid: int,
    user: int,
    system: int = 0,
    *,
    state: str = S,
    started: int = 0,
    faults: int = 0,
    pages: int = 7,
    parent: int = 1,
    inherited: int = 0,
) -> bytes:
    counters = f"{2 * faults} {10 * inherited} {faults} 0 {user} {system} {inherited} 0"
    return f"{pid} (a) {state} {parent} 1 1 0 -1 0 {counters} 20 0 1 0 {started} 0 {pages}\n".encode()


def task(
    tid: int, run_s: float, *, wait_s: float = 0, state: str = S, wchan: str = "futex_wait", started: int = 0
) -> bytes:
    stat = process_text(tid, int(run_s * 100), state=state, started=started)
    texts = (stat, f"{run_s * 1e9:.0f} {wait_s * 1e9:.0f} 1\n".encode(), wchan.encode())
    return TASK.pack(tid, *map(len, texts)) + b"".join(texts)


def process(
    component: str, pid: int, cpu_ticks: int, tasks: bytes = b"", *, started: int = 0, faults: int = 0, pages: int = 7
) -> dict[str, bytes]:
    stat = process_text(pid, cpu_ticks, started=started, faults=faults, pages=pages)
    entries = {f"{component}:{pid}:/proc/{pid}/stat": stat}
    return entries | ({f"{component}:{pid}:tasks": tasks} if tasks else {})


def test_cpu_of_the_machine() -> None:
    ticks = [
        sample(10, {"system:/proc/stat": stat_text(1000, 5000, 0, running=3, created=5)}),
        sample(12, {"system:/proc/stat": stat_text(1100, 5260, 40, running=5, created=25)}),
    ]
    metrics = window_metrics(ticks, 10, 12)
    assert metrics["system.cpu.utilization"] == pytest.approx(140 / 400)
    assert metrics["system.cpu.user"] == pytest.approx(100 / 400)
    assert metrics["system.cpu.steal"] == pytest.approx(40 / 400)
    assert metrics["system.cpu.busy_cores"] == pytest.approx(0.5)
    assert metrics["system.cpu.busiest"] == pytest.approx(0.5)
    assert metrics["system.cpu.count"] == 2
    assert metrics["system.processes.running"] == 3  # of 3 and 5, without the recorder itself
    assert metrics["system.processes.blocked"] == 2
    assert metrics["system.processes.created"] == 10
    assert metrics["system.context_switches"] == 100


def test_the_busiest_disk_and_its_flushes() -> None:
    def line(name: str, reads: int, busy_ms: int, flushes: int, flush_ms: int) -> bytes:
        done = f"{reads} 0 {reads * 8} 0 0 0 0 0 0 {busy_ms} {3 * busy_ms}"
        return f"8 0 {name} {done} 0 0 0 0 {flushes} {flush_ms}\n".encode()

    ticks = [
        sample(
            0, {"system:/proc/diskstats": line("sda", 0, 0, 0, 0) + line("sda1", 0, 0, 0, 0) + line("sdb", 0, 0, 0, 0)}
        ),
        sample(
            2,
            {
                "system:/proc/diskstats": line("sda", 10, 500, 4, 6)
                + line("sda1", 10, 500, 0, 0)
                + line("sdb", 20, 1500, 2, 100)
            },
        ),
    ]
    metrics = window_metrics(ticks, 0, 2)
    assert metrics["system.disk.busy"] == pytest.approx(0.75)
    assert metrics["system.disk.working"] == pytest.approx(0.8)
    assert metrics["system.disk.queue"] == pytest.approx(2.25)
    assert metrics["system.disk.reads"] == pytest.approx(15)
    assert metrics["system.disk.read_bytes"] == pytest.approx(15 * 8 * 512)
    assert metrics["system.disk.flushes"] == pytest.approx(3)
    assert metrics["system.disk.flush_ms"] == pytest.approx(106 / 6)


def test_memory_paging_pressure_and_files_of_the_machine() -> None:
    def entries(available: int, dirty: int, count: int) -> dict[str, bytes]:
        return {
            "system:/proc/meminfo": f"MemTotal: 1000 kB\nMemAvailable: {available} kB\nDirty: {dirty} kB\n".encode(),
            "system:/proc/vmstat": b"pgmajfault %d\nallocstall_normal %d\nallocstall_movable %d\n"
            % (count, count, count),
            "system:/proc/pressure/io": f"some avg10=0 total={count}00000\nfull avg10=0 total={count}0000\n".encode(),
            "system:/proc/sys/fs/file-nr": f"{count}\t0\t5000\n".encode(),
        }

    metrics = window_metrics(
        [sample(0, entries(600, 5, 2)), sample(1, entries(300, 9, 6)), sample(2, entries(400, 1, 4))], 0, 2
    )
    assert metrics["system.memory.available"] == 300 * 1024
    assert metrics["system.memory.used"] == 700 * 1024
    assert metrics["system.memory.utilization"] == pytest.approx(0.7)
    assert metrics["system.memory.dirty"] == 9 * 1024
    assert metrics["system.paging.major_faults"] == 1
    assert metrics["system.paging.direct_stalls"] == 2
    assert metrics["system.pressure.io.some"] == pytest.approx(0.1)
    assert metrics["system.pressure.io.full"] == pytest.approx(0.01)
    assert metrics["system.files.allocated"] == 6
    assert metrics["system.files.limit"] == 5000


def test_cpu_of_the_target_its_hottest_thread_and_its_waiting() -> None:
    ticks = [
        sample(0, process("target", 7, 100, task(7, 1.0) + task(8, 0.0))),
        sample(2, process("target", 7, 251, task(7, 2.504, wait_s=0.4) + task(8, 0.006))),
    ]
    metrics = window_metrics(ticks, 0, 2)
    assert metrics["target.cpu.cores"] == pytest.approx(0.755)  # the threads' nanoseconds, which agree with 1.51 s
    assert metrics["target.cpu.user_cores"] == pytest.approx(0.755)
    assert metrics["target.cpu.hottest_thread"] == pytest.approx(0.752)
    assert metrics["target.cpu.run_delay"] == pytest.approx(0.2)


def test_threads_too_short_to_be_seen_still_count_as_cpu_of_the_target() -> None:
    ticks = [sample(0, process("target", 7, 0, task(7, 0.0))), sample(2, process("target", 7, 180, task(7, 0.1)))]
    assert window_metrics(ticks, 0, 2)["target.cpu.cores"] == pytest.approx(0.9)


def test_threads_and_processes_that_live_for_a_part_of_the_window_count() -> None:
    old = task(7, 5.0)
    ticks = [
        sample(10, process("driver", 7, 500, old)),
        sample(
            11, process("driver", 7, 520, old + task(9, 0.2, started=1550)) | process("driver", 30, 60, started=1540)
        ),
        # Followed only from here on, but older than the window: what it did before is not counted.
        sample(
            12, process("driver", 7, 550, old) | process("driver", 30, 80, started=1540) | process("driver", 31, 900)
        ),
        sample(13, process("driver", 7, 550, old) | process("driver", 31, 910)),
    ]
    metrics = window_metrics(ticks, 10, 13)
    assert metrics["driver.cpu.cores"] == pytest.approx((0.5 + 0.8 + 0.1) / 3)
    assert metrics["driver.cpu.hottest_thread"] == pytest.approx(0.2 / 3)


def test_a_child_that_has_ended_counts_with_its_parent_and_only_once() -> None:
    """The parent inherits 50 ticks: 30 of a child that was seen for 20 of them, and 20 of others that nobody saw."""

    def stat(pid: int, user: int, **more: int) -> dict[str, bytes]:
        return {f"target:{pid}:/proc/{pid}/stat": process_text(pid, user, **more)}

    ticks = [
        sample(0, stat(7, 100, inherited=400) | stat(8, 5, parent=7)),
        sample(1, stat(7, 100, inherited=400) | stat(8, 20, parent=7)),
        sample(2, stat(7, 110, inherited=450)),
    ]
    metrics = window_metrics(ticks, 0, 2)
    assert metrics["target.cpu.cores"] == pytest.approx((0.10 + 0.15 + 0.30) / 2)
    assert metrics["target.cpu.user_cores"] == pytest.approx((0.10 + 0.15 + 0.30) / 2)
    assert metrics["target.paging.minor_faults"] == pytest.approx(500 / 2)


def test_states_of_threads_are_averages_and_polling_is_told_from_waiting() -> None:
    def threads(*states: tuple[str, str]) -> bytes:
        return b"".join(task(number, 0, state=state, wchan=wchan) for number, (state, wchan) in enumerate(states, 7))

    ticks = [
        sample(0, process("target", 7, 0, threads((R, "0"), (S, "hrtimer_nanosleep"), (S, "futex_wait")))),
        sample(1, process("target", 7, 0, threads((D, "io_schedule"), (S, "hrtimer_nanosleep"), (S, "do_nanosleep")))),
    ]
    metrics = window_metrics(ticks, 0, 1)
    assert metrics["target.threads.count"] == 3
    assert metrics["target.processes.count"] == 1
    assert metrics["target.threads.running"] == 0.5
    assert metrics["target.threads.blocked"] == 0.5
    assert metrics["target.threads.sleeping"] == 2
    assert metrics["target.threads.polling"] == 1.5


def test_a_kernel_that_hides_where_threads_sleep_gives_no_polling_at_all() -> None:
    ticks = [sample(at_s, process("target", 7, 0, task(7, 0, wchan="0"))) for at_s in (0, 1)]
    metrics = window_metrics(ticks, 0, 1)
    assert metrics["target.threads.sleeping"] == 1
    assert "target.threads.polling" not in metrics


def test_open_files_limits_memory_io_faults_and_switches_of_the_target() -> None:
    def entries(pid: int, files: int, pages: int, count: int) -> dict[str, bytes]:
        status = f"voluntary_ctxt_switches:\t{count * 10}\nnonvoluntary_ctxt_switches:\t{count}\n".encode()
        return process("target", pid, 0, faults=count, pages=pages) | {
            f"target:{pid}:fd": b"%d\n" % files,
            f"target:{pid}:/proc/{pid}/io": f"syscw: {count}\nread_bytes: {count * 100}\nwrite_bytes: 0\n".encode(),
            f"target:{pid}:/proc/{pid}/limits": f"Limit   Soft\nMax open files   {pid}00   9999   files\n".encode(),
            f"target:{pid}:task-status": TASK.pack(pid, len(status), 0, 0) + status,
        }

    ticks = [
        sample(0, entries(7, 10, 50, 0) | entries(8, 90, 1, 0)),
        sample(1, entries(7, 20, 80, 2) | entries(8, 95, 2, 0)),
        sample(2, entries(7, 15, 60, 4) | entries(8, 91, 3, 0)),
    ]
    metrics = window_metrics(ticks, 0, 2)
    assert metrics["target.open_files"] == 95
    assert metrics["target.open_files.limit"] == 800
    assert metrics["target.memory.rss"] == 82 * 4096
    assert metrics["target.io.read_bytes"] == 200
    assert metrics["target.io.write_calls"] == 2
    assert metrics["target.paging.major_faults"] == 2
    assert metrics["target.paging.minor_faults"] == 4
    assert metrics["target.context_switches.voluntary"] == 20
    assert metrics["target.context_switches.involuntary"] == 2


def test_foreign_is_what_nobody_in_the_study_did_and_a_process_counts_once() -> None:
    def entries(user: int, idle: int, target: int, recorder_ns: int) -> dict[str, bytes]:
        return (
            {"system:/proc/stat": stat_text(user, idle), "recorder:/proc/self/schedstat": b"%d 0 1\n" % recorder_ns}
            | process("target", 7, target)
            | process("driver", 7, target)
        )

    metrics = window_metrics([sample(0, entries(0, 0, 0, 0)), sample(2, entries(200, 200, 90, 100_000_000))], 0, 2)
    assert metrics["recorder.cpu.cores"] == pytest.approx(0.05)
    assert metrics["system.cpu.foreign"] == pytest.approx((1.0 - 0.45 - 0.05) / 2)
    metrics = window_metrics([sample(0, entries(0, 0, 0, 0)), sample(2, entries(200, 200, 900, 0))], 0, 2)
    assert metrics["system.cpu.foreign"] == 0


def test_an_embedded_target_is_measured_in_the_drivers_processes() -> None:
    ticks = [sample(0, process("driver", 7, 0)), sample(1, process("driver", 7, 50))]
    assert "target.cpu.cores" not in window_metrics(ticks, 0, 1)
    assert window_metrics(ticks, 0, 1, embedded=True)["target.cpu.cores"] == pytest.approx(0.5)


def test_only_ticks_within_the_window_count() -> None:
    ticks = [sample(at_s, process("target", 7, cpu)) for at_s, cpu in [(0, 0), (1, 900), (2, 950), (3, 2000)]]
    assert window_metrics(ticks, 0.5, 2.5)["target.cpu.cores"] == pytest.approx(0.5)


def test_a_note_at_the_edge_of_the_window_is_no_tick() -> None:
    ticks = [
        note(0.9, "{}"),
        *(sample(at_s, {"system:/proc/stat": stat_text(at_s, at_s)}) for at_s in (1, 3)),
        note(3.1, "{}"),
    ]
    assert window_metrics(ticks, 0, 4)["system.cpu.user"] == pytest.approx(0.5)


SERVICE = [CounterSpec("Opened", "mariadb.opened_tables", True), CounterSpec("Open", "mariadb.open_tables", False)]


def test_service_counters_use_the_notes_own_times_nearest_to_the_edges() -> None:
    ticks = [note(at_s, json.dumps({"Opened": opened, "Open": open_})) for at_s, opened, open_ in
             [(0.0, 0, 99), (0.9, 100, 5), (2.0, 210, 9), (3.2, 560, 7), (4.0, 9999, 99)]]  # fmt: skip
    metrics = window_metrics(ticks, 1.0, 3.0, service=SERVICE)
    assert metrics == {"mariadb.opened_tables": pytest.approx(460 / 2.3), "mariadb.open_tables": 9}


def test_a_window_shorter_than_the_notes_interval_is_enclosed_by_two() -> None:
    ticks = [note(1, '{"Opened": 10}'), note(2, '{"Opened": 30}')]
    assert window_metrics(ticks, 1.1, 1.3, service=SERVICE) == {"mariadb.opened_tables": 20}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"Opened": null, "Open": true}', '{"Opened": NaN}', '{"Opened": 1e999}']
)
def test_a_note_that_is_no_object_of_numbers_is_passed_over(text: str) -> None:
    ticks = [note(1, '{"Opened": 10}'), note(1.5, text), note(2, '{"Opened": 30}')]
    assert window_metrics(ticks, 1, 2, service=SERVICE) == {"mariadb.opened_tables": 20}


def test_a_counter_that_was_reset_or_seen_once_is_absent() -> None:
    assert window_metrics([note(1, '{"Opened": 10}'), note(2, '{"Opened": 3}')], 1, 2, service=SERVICE) == {}
    assert window_metrics([note(1, '{"Opened": 10}')], 1, 2, service=SERVICE) == {}


def test_a_counter_that_went_back_in_between_has_no_rate_however_far_it_came_again() -> None:
    ticks = [note(at_s, json.dumps({"Opened": value})) for at_s, value in [(1.0, 10), (1.5, 2), (2.0, 30)]]
    assert window_metrics(ticks, 1, 2, service=SERVICE) == {}


def test_notes_of_the_step_before_are_of_another_load() -> None:
    """The first reading of this step failed: what was counted before it began tells nothing of its rate."""
    told = [note(at_s, json.dumps({"Opened": value})) for at_s, value in [(1.0, 0), (2.4, 10), (3.0, 40)]]
    began = Tick(1.5, 1e9, {"mark:step-start": b"{}"}, FACTS, sample=False)
    assert window_metrics([told[0], began, *told[1:]], 1.6, 3.0, service=SERVICE)[
        "mariadb.opened_tables"
    ] == pytest.approx(50)
    assert window_metrics(told, 1.6, 3.0, service=SERVICE)["mariadb.opened_tables"] == 20


def test_what_a_service_exposes_is_known_by_its_name_and_histograms_by_their_quantiles() -> None:
    names = [f'service.took_seconds_bucket{{le="{bound}"}}' for bound in ("0.1", "1", "+Inf")]
    specs = read_specs(specs_text([CounterSpec(name, name, True) for name in (*names, "service.done_total")]).encode())
    first, last = dict.fromkeys(names, 100), dict(zip(names, (160, 195, 200), strict=True))
    ticks = [
        note(1, json.dumps({**first, "service.done_total": 5})),
        note(3, json.dumps({**last, "service.done_total": 9})),
    ]
    assert window_metrics(ticks, 1, 3, service=specs) == {
        "service.done_total": 2,
        "service.took_seconds_p50": 0.1,
        "service.took_seconds_p95": 1,
    }, "the 99th percentile is above the last bound, and nothing says how far"


def test_one_tick_or_none_gives_no_metrics() -> None:
    tick = sample(1, {"system:/proc/stat": stat_text(1, 1)} | process("target", 7, 5))
    assert window_metrics([], 0, 2) == {}
    assert window_metrics([tick], 0, 2) == {}


SLEEPER = TASK.pack(7, 9, 0, 0) + b"7 (a) S 1"
CALL = TASK.pack(7, 10, 8, 0) + b"7 0x1 0x1\n" + b"\x05\0\0\0\x01\0\0\0"
SOCKET = ROW.pack(5, 9, 2, 72, 28) + bytes([2, 1]) + bytes(98)
JVM = b"sun.os.hrt.frequency 9\nsun.gc.collector.0.time x\nsun.gc.generation.0.space.0.used 5\n"


@given(st.lists(st.dictionaries(st.sampled_from([
    "system:/proc/stat", "system:/proc/diskstats", "system:/proc/meminfo", "target:7:/proc/7/stat", "target:7:tasks",
    "target:7:fd", "target:7:/proc/7/limits", "target:7:/proc/7/io", "target:7:task-status", "note:service",
    "target:7:cpu", "target:7:threads", "target:7:task-schedstat", "target:7:/proc/7/status",
    "target:cgroup:/x/cpu.stat", "target:cgroup:/x/cpu.max", "target:cgroup:/x/memory.max",
    "target:cgroup:/x/cpu.pressure", "system:/proc/net/snmp",
    "system:/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "recorder:/proc/self/schedstat", "system:/proc/pressure/io", "target:x:/proc/x/stat", "target:/stat",
    "target:7:task-syscall", "target:7:sockets", "target:7:listeners", "target:7:jvm", "target:7:netstat",
    "target:7:exe", "recorder:machine",
    "system:local-ports", "system:/proc/sys/net/ipv4/ip_local_port_range", "system:/proc/net/netstat",
]), st.one_of(st.binary(max_size=60), st.sampled_from([
        *(stat_text(3, 9), process_text(7, 5), task(7, 1.0), b"5\n", SLEEPER, CALL, SOCKET, JVM, b"x86_64"),
    ]))),
    min_size=2, max_size=5))  # fmt: skip
def test_damaged_entries_make_metrics_absent_and_nothing_worse(entries: list[dict[str, bytes]]) -> None:
    ticks = [sample(at_s, each) for at_s, each in enumerate(entries)]
    assert all(map(is_known, window_metrics(ticks, 0, 9, service=SERVICE)))


def test_the_cpu_clock_of_a_process_counts_threads_that_nobody_saw() -> None:
    def entries(cpu_ns: int, ticks: int) -> dict[str, bytes]:
        return process("target", 7, ticks) | {"target:7:cpu": b"%d\n" % cpu_ns, "target:7:threads": b"1\n"}

    metrics = window_metrics([sample(0, entries(10**9, 100)), sample(2, entries(2_234_000_000, 223))], 0, 2)
    assert metrics["target.cpu.cores"] == pytest.approx(0.617)
    assert metrics["target.cpu.user_cores"] == pytest.approx(0.615)


def test_what_is_read_once_per_second_counts_by_its_own_times() -> None:
    """A process of more than a thousand threads, in a window of half a second between two readings."""
    ticks = [sample(at_s, {"target:7:threads": b"5000\n"}) for at_s in (1.2, 1.4, 1.6)]
    ticks += [sample(at_s, process("target", 7, 100 * at_s) | {"target:7:cpu": b"%d\n" % (at_s * 10**9)
               }) for at_s in (1, 2)]  # fmt: skip
    metrics = window_metrics(ticks, 1.1, 1.7)
    assert metrics["target.cpu.cores"] == pytest.approx(1.0)
    assert metrics["target.memory.rss"] == 7 * 4096


def test_the_hottest_thread_is_told_only_where_nearly_all_were_seen_twice() -> None:
    def entries(*rows: tuple[int, float]) -> dict[str, bytes]:
        data = b"".join(
            TASK.pack(thread, 0, len(text), 0) + text
            for thread, run_s in rows
            if (text := b"%d 0 1\n" % round(run_s * 1e9))
        )
        states = task(1, 0)
        return {"driver:7:threads": b"4\n", "driver:7:task-schedstat": data, "driver:7:tasks": states}

    seen = [sample(0, entries((1, 0), (2, 0))), sample(1, entries((3, 5), (4, 5)))]
    half = window_metrics([*seen, sample(2, entries((1, 0.5), (2, 1.0)))], 0, 2)
    assert "driver.cpu.hottest_thread" not in half
    assert half["driver.cpu.run_delay"] == 0
    whole = window_metrics([*seen, sample(2, entries((1, 0.5), (2, 1.0))), sample(3, entries((3, 6), (4, 6.5)))], 0, 3)
    assert whole["driver.cpu.hottest_thread"] == pytest.approx(0.75)


def test_a_clock_that_is_set_is_seen_and_one_that_is_slewed_is_not() -> None:
    def ticks(*offsets_s: float) -> list[Tick]:
        return [Tick(at_s / 10, 1e9 + at_s / 10 + off_s, {}, FACTS) for at_s, off_s in enumerate(offsets_s)]

    assert window_metrics(ticks(0, 0.008, 0.016, 0.008), 0, 1)["system.clock.step"] == 0
    assert window_metrics(ticks(0, 0, -2.5, -2.5), 0, 1)["system.clock.step"] == pytest.approx(2.5)


def test_cpus_that_slow_down_and_idle_ones_that_may() -> None:
    def reading(at_s: float, first: int, second: int, throttled: int) -> Tick:
        folder = "system:/sys/devices/system/cpu/cpu"
        return sample(
            at_s,
            {
                f"{folder}0/cpufreq/scaling_cur_freq": b"%d\n" % first,
                f"{folder}1/cpufreq/scaling_cur_freq": b"%d\n" % second,
                f"{folder}0/thermal_throttle/core_throttle_count": b"%d\n" % throttled,
            },
        )

    steady = window_metrics([reading(0, 3_000_000, 800_000, 5), reading(1, 900_000, 2_900_000, 5)], 0, 1)
    assert steady["system.cpu.frequency_drop"] == pytest.approx(1 / 30)
    assert steady["system.cpu.throttles"] == 0
    hot = window_metrics([reading(0, 3_000_000, 3_000_000, 5), reading(1, 1_500_000, 1_200_000, 8)], 0, 1)
    assert hot["system.cpu.frequency"] == 2.25e9
    assert hot["system.cpu.frequency_drop"] == pytest.approx(0.5)
    assert hot["system.cpu.throttles"] == 3
    idle = reading(-0.5, 800_000, 900_000, 5)
    begun = [idle, reading(0.1, 3_000_000, 800_000, 5), reading(0.9, 3_000_000, 800_000, 5), reading(1.4, 1, 2, 5)]
    assert window_metrics(begun, 0, 1)["system.cpu.frequency_drop"] == 0
    between = [idle, sample(0.2, {}), sample(0.8, {}), reading(1.1, 3_000_000, 800_000, 5)]
    nearest = window_metrics(between, 0, 1)
    assert (nearest["system.cpu.frequency"], nearest["system.cpu.frequency_drop"]) == (3e9, 0)


def test_the_cpus_that_the_driver_may_use() -> None:
    def entries(cpu_ticks: int) -> dict[str, bytes]:
        status = b"Name:\ta\nCpus_allowed_list:\t1,3-5\n"
        return process("driver", 7, cpu_ticks) | {"driver:7:/proc/7/status": status}

    metrics = window_metrics([sample(0, entries(0)), sample(1, entries(150))], 0, 1)
    assert metrics["driver.cpu.limit"] == 2  # the machine has no more
    assert metrics["driver.cpu.utilization"] == pytest.approx(0.75)


def test_time_without_ticks_is_evidence() -> None:
    facts = Facts(0.1, 100, 2, 4096, 5.0, 0.0, 1e9)
    ticks = [Tick(at_s, at_s, {}, facts) for at_s in (0.0, 0.1, 0.35, 0.45, 0.95, 1.0)]
    metrics = window_metrics(ticks, 0, 1)
    assert metrics["system.stall.longest_ms"] == pytest.approx(500)
    assert metrics["system.stall.share"] == pytest.approx(0.4)


def test_sockets() -> None:
    def entries(again: int, full: int) -> dict[str, bytes]:
        return {
            "system:/proc/net/snmp": b"Ip: A\nIp: 1\nTcp: InSegs RetransSegs\nTcp: 9 %d\n" % again,
            "system:/proc/net/netstat": b"TcpExt: ListenOverflows ListenDrops\nTcpExt: %d 0\n" % full,
        }

    inside = [sample(at_s, {}) for at_s in (0.5, 1.5)]
    metrics = window_metrics([sample(0, entries(3, 0)), *inside, sample(2, entries(7, 1))], 0.4, 1.6)
    assert metrics["system.network.retransmits"] == 2
    assert metrics["system.network.listen_overflows"] == 0.5


def test_pages_that_other_cpus_had_to_forget() -> None:
    def entries(told: int) -> dict[str, bytes]:
        lines = (
            f"  CPU0   CPU1\n  1:  7  0  IO-APIC  9-edge  i8042\nTLB:  {told}  {2 * told}  TLB shootdowns\nERR:  0\n"
        )
        return {"system:/proc/interrupts": lines.encode()}

    inside = [sample(at_s, {}) for at_s in (0.5, 1.5)]
    metrics = window_metrics([sample(0, entries(100)), *inside, sample(2, entries(120))], 0.4, 1.6)
    assert metrics["system.tlb_shootdowns"] == 30
    other = {"system:/proc/interrupts": b"  CPU0\nIPI0:  7  Rescheduling\n"}
    assert "system.tlb_shootdowns" not in window_metrics([sample(0, other), *inside, sample(2, other)], 0.4, 1.6)


def test_groups_followed_at_the_end_are_those_that_count() -> None:
    """Before the window another cage was followed under the same name, and after it again."""

    def entries(group: str, used: int) -> dict[str, bytes]:
        return {f"target:cgroup:/{group}/memory.current": b"%d\n" % used}

    ticks = [sample(at_s, entries("b", 7)) for at_s in (0.0, 0.5)]
    ticks += [sample(at_s, entries("a", used)) for at_s, used in ((1.0, 100), (1.5, 300), (2.0, 200))]
    ticks += [sample(2.5, entries("b", 9))]
    assert window_metrics(ticks, 0.9, 2.1)["target.cage.memory.usage"] == 300


def test_the_group_around_a_target_has_metrics_of_its_own() -> None:
    def entries(throttled: int) -> dict[str, bytes]:
        files = {"cpu.stat": f"usage_usec {50_000 * throttled}\nnr_throttled {throttled}\n", "cpu.max": "50000 100000"}
        return {f"target.cgroup:cgroup:/pod/{name}": text.encode() for name, text in files.items()}

    metrics = window_metrics([sample(at_s, entries(9 * at_s)) for at_s in (0, 1, 2)], 0, 2)
    assert metrics["target.cgroup.cpu.throttled_share"] == pytest.approx(0.9)
    assert metrics["target.cgroup.cpu"] == pytest.approx(0.45)
    assert metrics["target.cgroup.cpu.limit"] == 0.5
    assert not any(".cage." in name for name in metrics)


def test_a_gap_is_a_stall_only_beyond_three_intervals() -> None:
    ticks = [sample(at_s, {}) for at_s in (0.0, 0.1, 0.35, 0.45, 0.95)] + [note(0.7, "{}")]
    assert stalls(ticks, 0.1) == [Stall(0.45, pytest.approx(0.5))]  # type: ignore[arg-type]


def test_memory_that_processes_share_counts_once() -> None:
    def server(pid: int, pages: int, shared_kb: int) -> dict[str, bytes]:
        status = f"VmRSS:\t{4 * pages} kB\nRssAnon:\t{4 * pages - shared_kb} kB\nRssFile:\t{shared_kb // 2} kB\n"
        status += f"RssShmem:\t{shared_kb - shared_kb // 2} kB\n"
        return {**process("target", pid, 1, pages=pages), f"target:{pid}:/proc/{pid}/status": status.encode()}

    entries = server(7, 100, 320) | server(8, 60, 200) | server(9, 20, 0)
    metrics = window_metrics([sample(10, entries), sample(12, entries)], 10, 12)
    assert metrics["target.memory.rss"] == (400 - 320 + 240 - 200 + 80 + 320) * 1024


def test_a_target_in_several_pieces_is_all_of_them_and_of_its_cages_the_fullest() -> None:
    def at(moment: int) -> dict[str, bytes]:
        entries = process("shard1", 7, 100 * moment) | process("shard2", 8, 20 * moment) | process("driver", 9, moment)
        for name, used in (("shard1", 8), ("shard2", 3)):
            entries[f"{name}:cgroup:/x/{name}/memory.current"] = f"{used * moment}\n".encode()
        return entries

    metrics = window_metrics([sample(10, at(1)), sample(12, at(2))], 10, 12, pieces=("shard1", "shard2"))
    assert metrics["shard1.cpu.cores"] == pytest.approx(0.5)
    assert metrics["target.cpu.cores"] == pytest.approx(0.6)
    assert metrics["target.cage.memory.usage"] == metrics["shard1.cage.memory.usage"] == 16
    assert metrics["shard2.cage.memory.usage"] == 6
    assert "shard3.cpu.cores" not in metrics
