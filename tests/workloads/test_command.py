"""The user's own driver: what it is told, what it may print, and that nothing wrong passes for a measurement."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from loadframe.errors import MissingTool, StudyError, WorkloadError
from loadframe.host.identity import identify
from loadframe.host.privilege import US, LeaseUser, free_user, make_private
from loadframe.host.processes import Allowance
from loadframe.model import NO_LATENCIES, WHOLE_SECONDS, Declared, Endpoint, SettingValue
from loadframe.study.reading import parse
from loadframe.workloads import registry
from loadframe.workloads.own_program import OutputDriver, OwnProgram
from waiting import await_that

ENDPOINT = Endpoint("url", "127.0.0.1:8099", {"host": "shop.example"})
SOON_S = 60.0
BEGIN = """
import json, os, sys, time
until = time.monotonic() + float(os.environ["LOADFRAME_DURATION_S"])
output = open(os.environ["LOADFRAME_OUTPUT"], "a")
def tell(**line):
    print(json.dumps(line), file=output, flush=True)
"""
WORK = """
while time.monotonic() < until:
    time.sleep(0.01)
    tell(end=time.monotonic(), latency_ms=9)
"""
Run = Callable[..., OutputDriver]


def make(program: str, options: Mapping[str, SettingValue] | None = None, axis: str = "users") -> OwnProgram:
    declared = Declared(command=(sys.executable, "-c", program))
    made = registry.make(
        "command", {"loop": "closed", "startup_s": 5, **(options or {})}, Allowance(US), axis=axis, declared=declared
    )
    assert isinstance(made, OwnProgram)
    return made


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A step of a driver in Python, to its end."""

    def started(program: str, seconds: float = 0.5, level: int = 3, **options: SettingValue) -> OutputDriver:
        driver = make(program, options).start(ENDPOINT, level, tmp_path, seconds)
        assert driver.wait(SOON_S)
        driver.kill()
        return driver

    return started


def refused(driver: OutputDriver) -> WorkloadError:
    with pytest.raises(WorkloadError) as caught:
        driver.requests()
    assert caught.value.remedy
    return caught.value


# --- what it is told ---


@pytest.mark.long
def test_its_environment_is_that_of_the_contract(tmp_path: Path) -> None:
    workload = make(BEGIN + "print(json.dumps(dict(os.environ)), file=sys.stderr)" + WORK, {"seed": 7})
    workload.expect(0.4)
    driver = workload.start(ENDPOINT, 12, tmp_path, 1.5)
    assert driver.wait(SOON_S)
    driver.kill()
    told = json.loads((tmp_path / "stderr.txt").read_text())
    page = (Path(__file__).parents[2] / "docs/driving-with-a-command.md").read_text()
    mine = {name: value for name, value in told.items() if f"`{name}`" in page}
    assert mine == {
        "LOADFRAME_LEVEL": "12",
        "LOADFRAME_AXIS": "users",
        "LOADFRAME_DURATION_S": "1.500",
        "LOADFRAME_WARMUP_S": "0.400",
        "LOADFRAME_WINDOW_S": "1.100",
        "LOADFRAME_SEED": "7",
        "LOADFRAME_ADDRESS": "127.0.0.1:8099",
        "LOADFRAME_HOST": "127.0.0.1",
        "LOADFRAME_PORT": "8099",
        "LOADFRAME_URL": "http://127.0.0.1:8099",
        "LOADFRAME_HOST_HEADER": "shop.example",
        "LOADFRAME_OUTPUT": str(tmp_path / "output.jsonl"),
        "LOADFRAME_STAGES": str(tmp_path / "stages.jsonl"),
    }


STUDY = """
[study]
name = "own-driver"
question = "How many orders a second?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:8099"
[load]
axis = "AXIS"
levels = [1, 2]
[workload]
kind = "command"
command = ["python3", "driver.py"]
[workload.options]
loop = "LOOP"
"""


def of_study(text: str) -> OwnProgram:
    study = parse(text)
    given = study.workload
    made = registry.make(given.kind, given.options, Allowance(US), axis=study.load.axis, declared=given.declared)
    assert isinstance(made, OwnProgram)
    return made


@pytest.mark.parametrize(
    ("axis", "loop", "open_loop"),
    [("users", "closed", False), ("sensors", "open", True), ("rate", "open", True), ("clients", "closed", False)],
)
def test_the_axis_is_the_studys_own_word_and_its_loop_is_declared(axis: str, loop: str, open_loop: bool) -> None:
    made = of_study(STUDY.replace("AXIS", axis).replace("LOOP", loop))
    assert made.axes == {axis}
    assert made.open_loop is open_loop
    assert registry.has_axis("command", axis) and not registry.has_axis("http", axis + "s")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('loop = "LOOP"', ""), "workload.options.loop is missing"),
        (('command = ["python3", "driver.py"]', ""), "workload.command is missing"),
        (('"LOOP"', '"undeclared"'), "workload.options.loop is missing"),
        (('"python3", "driver.py"', '" "'), "its first word is empty"),
        (('"driver.py"', r'"a\u0000b"'), "NUL|U\\+0000"),
        (('"AXIS"', '"rate"'), "axis rate is that of a loop that is open"),
    ],
)
def test_a_study_that_leaves_out_what_only_it_can_say_is_refused(change: tuple[str, str], why: str) -> None:
    text = STUDY.replace(*change).replace("AXIS", "users").replace("LOOP", "closed")
    with pytest.raises(StudyError, match=why) as caught:
        of_study(text)
    assert caught.value.remedy


def test_other_workloads_take_no_command() -> None:
    with pytest.raises(StudyError, match=r"workload\.command") as caught:
        registry.make("http", {}, Allowance(US), declared=Declared(command=("driver",)))
    assert "command" in caught.value.remedy


def test_a_program_that_is_not_there_is_named() -> None:
    made = registry.make(
        "command", {"loop": "closed"}, Allowance(US), declared=Declared(command=("no-such-driver", "x"))
    )
    with pytest.raises(MissingTool, match="no-such-driver"):
        made.install(ENDPOINT)


# --- what it prints ---


def test_requests_are_those_that_it_printed(run: Run) -> None:
    driver = run(BEGIN + """
for number in range(50):
    start = time.monotonic()
    time.sleep(0.02)
    end = time.monotonic()
    match number % 4:
        case 0: tell(end=end, latency_ms=1000 * (end - start), operation="put", bytes=10)
        case 1: tell(start=start, latency_ms=1000 * (end - start), operation="get")
        case 2: tell(intended=start, end=end, ok=False)
        case 3: tell(start=start, end=end, error="too late", bytes=1)
""")  # fmt: skip
    requests = driver.requests()
    assert len(requests) == 50
    assert np.all(np.diff(requests.end_s) > 0)
    assert np.all((requests.latency_ms >= 20) & (requests.latency_ms < 2000))
    assert requests.outcome.tolist()[:4] == [0, 0, 1, 1]
    names = make("").operations
    assert names == ("request",)
    assert requests.operation.tolist()[:4] == [1, 2, 0, 0]
    assert driver.moved_bytes(0, 1e12) == 13 * 10 + 12
    assert driver.marks == ()
    assert driver.offered(0, 1e12) is None


def test_standard_output_is_read_where_the_file_stays_empty(run: Run) -> None:
    driver = run(BEGIN.replace('open(os.environ["LOADFRAME_OUTPUT"], "a")', "sys.stdout") + WORK)
    assert len(driver.requests()) > 5
    assert driver.moved_bytes(0, 1e12) is None


def test_times_of_day_are_mapped_and_a_clock_of_its_own_by_its_zero(run: Run) -> None:
    before = time.monotonic()
    by_day = run(BEGIN + WORK.replace("end=time.monotonic()", "end=time.time()")).requests()
    own = run(BEGIN + "zero = time.monotonic()\ntell(zero=zero)\n" + WORK.replace("end=time.monotonic()",
              "end=time.monotonic() - zero")).requests()  # fmt: skip
    after = time.monotonic()
    assert np.all((by_day.end_s > before) & (by_day.end_s < own.end_s.min()))
    assert np.all(own.end_s < after)


def test_in_an_open_loop_what_it_tells_of_was_offered(run: Run) -> None:
    driver = run(BEGIN + WORK + "tell(start=time.monotonic(), latency_ms=0, error='given up')", loop="open")
    assert driver.offered(0, 1e12) == len(driver.requests())


SECONDS = """
from hdrh.histogram import HdrHistogram
histogram = HdrHistogram(1, 3_600_000_000, 3)
for value in range(1000, 2000):
    histogram.record_value(value)
while time.monotonic() < until:
    begin = time.monotonic()
    time.sleep(0.25)
    tell(second=begin, length_s=0.25, requests=1000, errors=2, histogram=histogram.encode().decode(), bytes=1002)
"""


def test_a_second_with_its_histogram_is_as_many_requests_of_its_latencies(run: Run) -> None:
    driver = run(BEGIN + SECONDS, seconds=1.0)
    requests = driver.requests()
    whole = len(requests) // 1002
    assert len(requests) == whole * 1002 and whole >= 4
    assert driver.marks == (WHOLE_SECONDS,)
    done = requests.latency_ms[requests.outcome == 0]
    assert np.sort(done) == pytest.approx(np.repeat(np.arange(1000, 2000) / 1000, whole), rel=1e-3)
    assert (requests.outcome != 0).sum() == 2 * whole
    within, _ = np.histogram(requests.end_s, bins=whole, range=(requests.end_s[0], requests.end_s[0] + 0.25 * whole))
    assert within.min() > 700, "they are spread over their second"
    assert driver.moved_bytes(0, 1e12) == pytest.approx(1002 * whole, rel=0.01)


def test_quantiles_alone_are_counted_and_give_no_latency(run: Run) -> None:
    quantiles = SECONDS.replace("histogram=histogram.encode().decode(), bytes=1002", "p50_ms=1, p95_ms=2")
    driver = run(BEGIN + quantiles)
    requests = driver.requests()
    assert driver.marks == (WHOLE_SECONDS, NO_LATENCIES)
    assert len(requests) % 1002 == 0
    assert not requests.latency_ms.any()


def test_latencies_that_are_all_0_are_none(run: Run) -> None:
    driver = run(BEGIN + WORK.replace("latency_ms=9", "latency_ms=0"))
    assert len(driver.requests()) > 5
    assert driver.marks == (NO_LATENCIES,)
    driver = run(BEGIN + WORK)
    assert len(driver.requests()) > 5 and driver.marks == ()


# --- what is refused ---

WRONG = {
    "nonsense": ("print('hello', file=output, flush=True)" + WORK, r"line 1: it is not JSON .* hello"),
    "a list": ("print([1, 2], file=output, flush=True)" + WORK, "line 1: it is no JSON object"),
    "two objects in a line": (
        """print('{"end": 1, "latency_ms": 1}, {"end": 2, "latency_ms": 1}', file=output)""" + WORK,
        "line 1: it is not JSON",
    ),
    "an object in two lines": ("""print('{"end": 1,\\n"latency_ms": 1}', file=output)""" + WORK, "line 1: it is not"),
    "no output": ("pass", "reported no request"),
    "stderr only": ("print('cannot connect', file=sys.stderr)", "reported no request"),
    "NaN": ("tell(end=time.monotonic(), latency_ms=float('nan'))", "line 1: it is not JSON .*NaN"),
    "infinite": ("tell(end=float('inf'), latency_ms=1)", "line 1: it is not JSON .*Infinity"),
    "negative": ("tell(end=time.monotonic(), latency_ms=-1)", "line 1: latency_ms is -1"),
    "a word for a number": ("tell(end=time.monotonic(), latency_ms='1')", "line 1: latency_ms is '1'"),
    "true for a number": ("tell(end=True, latency_ms=1)", "line 1: end is true"),
    "no number": ("tell(end=None, latency_ms=1)", "line 1: end is null"),
    "an empty object": ("tell()", "line 1: it has no latency_ms; it is empty"),
    "no latency": ("tell(end=time.monotonic())", "line 1: it has no latency_ms; it has end"),
    "no time": ("tell(latency_ms=1)", "line 1: it has no end and no start"),
    "it ends before it begins": ("tell(start=time.monotonic(), end=time.monotonic() - 1)", "line 1: it takes -"),
    "an unknown key": ("tell(end=1, latency=1)", "line 1: it has 'latency'. Did you mean 'latency_ms'"),
    "no word for ok": ("tell(end=1, latency_ms=1, ok='yes')", "ok is 'yes'"),
    "bytes below 0": ("tell(end=1, latency_ms=1, bytes=-1)", "bytes is -1"),
    "an operation that is none": ("tell(end=1, latency_ms=1, operation=7)", "operation is 7"),
    "too many operations": (
        "[tell(end=1, latency_ms=1, operation=f'o{n}') for n in range(100)]",
        "operation 'o64' is the 66th",
    ),
    "a long line": (
        "print('x' * 10_000_000, file=output, flush=True)",
        "line 1: it has more than 1,048,576 bytes: xxx",
    ),
    "deep": ("print('[' * 100_000, file=output, flush=True)", "line 1: it is not JSON"),
    "digits": ("print('{\"end\": ' + '9' * 5000 + '}', file=output, flush=True)", "digits"),
    "milliseconds": (WORK.replace("end=time.monotonic()", "end=1000 * time.time()"), "the time of day in milliseconds"),
    "nanoseconds": (WORK.replace("end=time.monotonic()", "end=time.monotonic_ns()"), "CLOCK_MONOTONIC in nanoseconds"),
    "a clock that begins at 0": (
        "zero = time.monotonic()" + WORK.replace("end=time.monotonic()", "end=time.monotonic() - zero"),
        "a clock of its own that begins near 0. Print .\"zero\"",
    ),
    "a clock that runs fast": (
        "zero = time.monotonic()"
        + WORK.replace("end=time.monotonic()", "end=zero + 3 * (time.monotonic() - zero)"),
        "after the driver itself: its clock runs fast",
    ),
    "a clock that runs slowly": (
        "zero = time.monotonic()"
        + WORK.replace("end=time.monotonic()", "end=zero + 0.1 * (time.monotonic() - zero)").replace("=9", "=0.1"),
        "ended early: .* lie between its first request and its last",
    ),
    "a zero after its times": ("tell(zero=time.monotonic() + 50)\ntell(end=0, latency_ms=1)", "with its zero at"),
    "times of no clock": ("tell(end=1e7, latency_ms=1)", "of no clock of this machine"),
    "a request before its start": ("tell(end=time.monotonic(), latency_ms=60_000)", "before the driver was started"),
    "requests and seconds": (
        "tell(end=time.monotonic(), latency_ms=1)\ntell(second=1, requests=1)",
        "line 2: it counts a second, and the lines before it are requests",
    ),
    "seconds and requests": (
        "tell(second=1, requests=1)\ntell(end=time.monotonic(), latency_ms=1)",
        "line 2: it is a request, and the lines before it count seconds",
    ),
    "a second without a number": ("tell(second=1)", "neither requests nor a histogram"),
    "a second twice": (
        "[tell(second=time.monotonic(), requests=1) for _ in range(2)]\n" + "time.sleep(1)",
        "count the same second",
    ),
    "more requests than there are": ("tell(second=1, requests=10**12)", "more than 50,000,000"),
    "half a request": ("tell(second=1, requests=0.5)", "requests is 0.5"),
    "no histogram": ("tell(second=1, histogram='abc')", "histogram: "),
    "a number for a histogram": ("tell(second=1, histogram=7)", "histogram: it is int"),
    "another number of requests": (
        SECONDS.replace("requests=1000", "requests=999"),
        "requests is 999, and its histogram has 1,000",
    ),
    "an unknown unit": ("tell(second=1, requests=1, unit='s')", "unit is 's'"),
    "a table for a unit": ("tell(second=1, requests=1, unit={})", "unit is {}"),
    "a long second": ("tell(second=1, requests=1, length_s=60)", "length_s is 60"),
    "it ends early": (WORK.replace("< until", "< until - 0.9"), "ended early"),
    "all fail": (
        WORK.replace("latency_ms=9", "latency_ms=9, error='connection refused'"),
        "All .* requests of the driver command failed: connection refused",
    ),
    "exit status 1": (
        "tell(end=time.monotonic(), latency_ms=1)\nsys.exit('it broke')",
        "failed: process .* ended with 1",
    ),
    "a torn last line": (WORK + "output.write('{')", "it is not JSON"),
}  # fmt: skip


OF_A_SECOND = frozenset({"it ends early", "a clock that runs slowly", "another number of requests"})


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_measurement_is_refused_in_words(case: str, run: Run) -> None:
    program, why = WRONG[case]
    error = refused(run(BEGIN + program, seconds=1.0 if case in OF_A_SECOND else 0.5))
    assert re.search(why, error.fact), error.fact
    assert len(error.fact) + len(error.details) < 5000
    if case in ("stderr only", "exit status 1"):
        assert ("cannot connect" if case == "stderr only" else "it broke") in error.details


@pytest.mark.long
def test_a_driver_that_goes_on_after_its_time_is_ended_and_named(run: Run) -> None:
    error = refused(run(BEGIN + WORK.replace("time.monotonic() < until", "True"), startup_s=0))
    assert "did not end: it went on for" in error.fact


@pytest.mark.long
def test_a_driver_that_hangs_without_a_request_is_ended_and_named(run: Run) -> None:
    program = "import sys, time\nprint('waiting for a token', file=sys.stderr, flush=True)\ntime.sleep(1000)"
    error = refused(run(program, startup_s=0))
    assert "reported no request" in error.fact and "did not end" in error.fact
    assert "waiting for a token" in error.details


@pytest.mark.long
def test_what_a_driver_printed_that_hangs_in_its_last_request_counts(run: Run) -> None:
    driver = run(BEGIN + WORK + "time.sleep(1000)", startup_s=0)
    assert len(driver.requests()) > 5


def test_a_flood_is_ended_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadframe.workloads.own_program.MOST_PRINTED_BYTES", 1 << 20)
    driver = make("import sys\nwhile True: sys.stderr.write('no ' * 1000)").start(ENDPOINT, 1, tmp_path, 60.0)
    assert driver.wait(SOON_S)
    error = refused(driver)
    assert "it wrote more than 1 MiB into stderr.txt" in error.fact
    assert len(error.details) < 5000


@pytest.mark.long
def test_a_million_lines_are_read(tmp_path: Path, run: Run) -> None:
    driver = run(BEGIN + """
for _ in range(10):
    time.sleep(0.05)
    output.write(('{"end": %.6f, "latency_ms": 0.5}\\n' % time.monotonic()) * 100_000)
""")  # fmt: skip
    assert len(driver.requests()) == 1_000_000


def test_all_that_a_driver_has_started_is_recorded_and_ended_with_it(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\ntime.sleep(1000)"
    )
    driver = make(program).start(ENDPOINT, 1, tmp_path, 60.0)

    def both() -> tuple[int, ...]:
        found = driver.pids()
        return found if [Path(f"/proc/{pid}/comm").read_text() for pid in found[1:]] == ["sleep\n"] else ()

    pids = await_that(both, "the driver and what it has started")
    driver.kill()
    for pid in pids:
        assert identify(pid) is None


def test_its_histogram_may_come_from_any_port_and_in_any_unit(run: Run) -> None:
    histogram = HdrHistogram(1, 10_000, 2)
    histogram.record_value(250, 4)
    line = {"requests": 4, "histogram": histogram.encode().decode(), "unit": "ms"}
    driver = run(BEGIN + f"""
while time.monotonic() < until:
    begin = time.monotonic()
    time.sleep(0.25)
    tell(second=begin, length_s=0.25, **{json.dumps(line)})
""")  # fmt: skip
    assert driver.requests().latency_ms == pytest.approx(250, rel=0.01)


@pytest.mark.skipif(free_user() is None, reason="only root starts processes under another user")
def test_it_runs_as_a_user_without_rights_that_may_write_its_output(tmp_path: Path) -> None:
    user = free_user()
    folder = Path(os.environ["LOADFRAME_SCRATCH"]) / tmp_path.name
    make_private(folder, LeaseUser(user))
    program = BEGIN + "print(os.getuid(), file=sys.stderr, flush=True)" + WORK
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("the system's Python is not there")
    made = registry.make(
        "command",
        {"loop": "closed"},
        Allowance(LeaseUser(user)),
        axis="users",
        declared=Declared(command=(python, "-c", program)),
    )
    driver = made.start(ENDPOINT, 1, folder, 1.0)
    assert driver.wait(SOON_S)
    driver.kill()
    assert len(driver.requests()) > 5
    assert (folder / "stderr.txt").read_text().strip() == str(user)
    shutil.rmtree(folder)


def test_statistics_of_stages_among_its_lines_are_no_requests(run: Run) -> None:
    driver = run(
        BEGIN
        + """tell(stage="APPLY", done=1)
tell(log="changes", read=1)"""
        + WORK
    )
    assert len(driver.requests()) > 0
    assert {path.name for path in driver.stage_files()} == {"stages.jsonl", "stdout.txt", "stderr.txt"}
