"""What perf prints becomes samples: recorded output exactly, anything else without an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.recording.profiles.perf import Reading, Sample, function_name, read_samples

RECORDED = Path(__file__).parents[1] / "data/profiles/perf-script.txt"


def read(text: str) -> tuple[list[Sample], Reading]:
    reading = Reading()
    return list(
        read_samples(text.splitlines(keepends=True), reading),
    ), reading


def test_recorded_output_is_read_exactly() -> None:
    samples, reading = read(RECORDED.read_text())
    assert (len(samples), reading.damaged, reading.lost) == (11, 0, 0)
    assert {sample.pid for sample in samples} == {4831, 12120, 26707}
    kworker = next(sample for sample in samples if sample.pid == 26707)
    assert kworker.command == "kworker/1:2H-kb"
    assert all(frame.endswith("_[k]") for frame in kworker.frames)
    server = [sample for sample in samples if sample.pid == 4831]
    whole = [sample for sample in server if sample.frames[0] == "clone3"]
    assert whole
    assert all(sample.frames[1] == "start_thread" and "do_command" in sample.frames for sample in whole)
    assert any(sample.frames[0] == "[truncated]" for sample in server)
    assert any(sample.frames[-1] == "[mariadbd]" for sample in server)
    assert all(14818 < sample.time_s < 14822 for sample in samples)


def test_kernel_frames_lie_inside_of_the_program_s() -> None:
    samples, _ = read(RECORDED.read_text())
    opening = next(sample for sample in samples if "path_openat_[k]" in sample.frames)
    assert opening.frames.index("my_open") < opening.frames.index("do_syscall_64_[k]")


def test_the_text_may_end_within_a_sample() -> None:
    whole = RECORDED.read_text()
    for length in range(0, len(whole), 97):
        samples, reading = read(whole[:length])
        assert len(samples) <= 11
        assert reading.damaged <= 1


def test_lost_samples_are_counted() -> None:
    text = "mariadbd 1/2 5.000001: PERF_RECORD_LOST lost 12\n\na b 1/2 6.5: \n\t ffff f (/x y (deleted))\n\n"
    samples, reading = read(text)
    assert reading.lost == 12
    assert samples == [Sample(6.5, 1, 2, "a b", ("f",))]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("handler::ha_open(TABLE*, char const*, int)", "handler::ha_open"),
        ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
        ("finish_task_switch.isra.0", "finish_task_switch"),
        ("ext4_fsync_nojournal.constprop.0", "ext4_fsync_nojournal"),
        ("(anonymous namespace)::run(int)", "(anonymous namespace)::run"),
        ("ns::(anonymous namespace)::run(int)", "ns::(anonymous namespace)::run"),
        ("Functor::operator()(int) const", "Functor::operator()"),
        ("std::map<int, long>::find(int const&)", "std::map<int, long>::find"),
        ("operator new(unsigned long)", "operator new"),
        ("main", "main"),
    ],
)
def test_functions_have_the_names_that_people_use(symbol: str, name: str) -> None:
    assert function_name(symbol) == name


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    samples, reading = read(text)
    assert reading.damaged >= 0
    assert all(sample.frames for sample in samples)


ADDRESSES = st.integers(0, 2**64 - 2)
NAMES = st.sampled_from(
    ["main", "handler::ha_open", "__x64_sys_futex", "std::map<int, long>::find", "~Table", "operator new"]
)
COMMANDS = st.sampled_from(["mariadbd", "kworker/1:2H-kb", "a b", "(x)", "perf 1/2", "3"])
SAMPLES = st.tuples(
    COMMANDS,
    st.integers(0, 2**22),
    st.integers(0, 2**22),
    st.integers(0, 10**11),
    st.lists(st.tuples(ADDRESSES, NAMES), min_size=1, max_size=6),
)


@given(st.lists(SAMPLES, max_size=4))
def test_every_sample_that_perf_prints_comes_back(
    printed: list[tuple[str, int, int, int, list[tuple[int, str]]]],
) -> None:
    text = "".join(
        f"{command:>15} {pid}/{thread} {micros // 10**6}.{micros % 10**6:06}: \n"
        + "".join(f"\t{address:16x} {name} (/usr/lib/lib.so)\n" for address, name in frames)
        + "\n"
        for command, pid, thread, micros, frames in printed
    )
    samples, reading = read(text)
    assert reading.damaged == 0
    for sample, (command, pid, thread, micros, frames) in zip(samples, printed, strict=True):
        assert (sample.command, sample.pid, sample.thread) == (command, pid, thread)
        assert sample.time_s == pytest.approx(micros / 10**6)
        wanted = [name + ("_[k]" if address >= 2**63 else "") for address, name in reversed(frames)]
        assert list(sample.frames) == wanted


def test_a_line_of_anything_costs_no_time() -> None:
    """A pattern that tries all ways to split a long line would take minutes here."""
    long = ["h 1/2 1.0: ", "a" + " " * 200_000, "\tffff " + " (" * 100_000, "1/2 " * 50_000, "@" * 200_000]
    assert len(read("\n".join(long))[0]) == 1
