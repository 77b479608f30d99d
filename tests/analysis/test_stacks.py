"""Shares, classes and flame graphs from stacks whose answer is known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis.stacks import ROWS, Baseline, class_of_frame, classify, flame, per_request, profile
from loadframe.knowledge.rows import CLASSES
from loadframe.model import Profile, ProfiledStep, ProfileKind, ProfileSource, Stack


def shares(
    stacks: list[Stack],
    kind: ProfileKind,
    *,
    rate: float,
    seconds: float,
    throughput: float,
    baseline: Baseline | None = None,
) -> Profile | None:
    source = ProfileSource(kind, "target", "", 0, rate, seconds)
    return profile(stacks, source, ProfiledStep("past", "A", 1.0, seconds, 0, throughput, (source,)), baseline)


SYSCALL = ("mariadbd", "clone3", "entry_SYSCALL_64_after_hwframe_[k]", "do_syscall_64_[k]")


@pytest.mark.parametrize(
    ("inner", "class_id"),
    [
        (("do_futex_[k]", "futex_wake_[k]", "_raw_spin_lock_[k]", "native_queued_spin_lock_slowpath_[k]"), "lock"),
        (("__x64_sys_fsync_[k]", "ext4_sync_file_[k]", "jbd2_log_wait_commit_[k]"), "io"),
        (("ksys_write_[k]", "ext4_file_write_iter_[k]", "submit_bio_noacct_[k]"), "io"),
        (("__sys_sendto_[k]", "unix_stream_sendmsg_[k]", "sock_alloc_send_pskb_[k]", "kmalloc_[k]"), "network"),
        (("__sys_recvfrom_[k]", "tcp_recvmsg_[k]", "_copy_to_iter_[k]"), "copy"),
        (("asm_exc_page_fault_[k]", "handle_mm_fault_[k]", "clear_page_erms_[k]"), "fault"),
        (("asm_exc_page_fault_[k]", "alloc_pages_[k]", "try_to_free_pages_[k]", "shrink_lruvec_[k]"), "reclaim"),
        (("do_sys_openat2_[k]", "path_openat_[k]", "kmem_cache_alloc_noprof_[k]"), "files"),
        (("do_sys_poll_[k]", "schedule_hrtimeout_range_[k]", "__schedule_[k]"), "scheduling"),
        (("kernel_clone_[k]", "copy_process_[k]"), "process"),
        (("something_new_[k]",), "kernel"),
        (("ut_delay",), "lock"),
        (("pthread_mutex_lock", "__lll_lock_wait"), "lock"),
        (("__memmove_evex_unaligned_erms",), "copy"),
        (("malloc", "_int_malloc"), "allocation"),
        (("v8::internal::Heap::CollectGarbage", "std::__detail::_Map_base<v8::internal::MemoryChunk*>"), "collecting"),
        (("MYSQLparse",), "user"),
        (("[mariadbd]",), "user"),
    ],
)
def test_a_stack_belongs_to_the_innermost_function_that_is_known(inner: tuple[str, ...], class_id: str) -> None:
    outer = SYSCALL if inner[0].endswith("_[k]") else SYSCALL[:2]
    assert classify((*outer, *inner)) == class_id


@pytest.mark.parametrize(
    ("inner", "class_id"),
    [
        (("[running or runnable]",), "running"),
        (("[sleeping]", "do_futex_[k]", "futex_do_wait_[k]", "[futex: lock]"), "lock"),
        (("[sleeping]", "do_futex_[k]", "futex_do_wait_[k]", "[futex: condition]"), "condition"),
        (("[sleeping]", "do_sys_poll_[k]", "poll_schedule_timeout_[k]"), "network"),
        (("[sleeping]", "__x64_sys_clock_nanosleep_[k]", "hrtimer_nanosleep_[k]"), "timer"),
        (("[uninterruptible]", "folio_wait_writeback_[k]"), "io"),
        (("[sleeping]", "do_sigtimedwait_[k]"), "waiting"),
        (("[uninterruptible]",), "waiting"),
    ],
)
def test_a_thread_belongs_to_what_it_sleeps_in(inner: tuple[str, ...], class_id: str) -> None:
    assert classify(("mariadbd", *inner), "threads") == class_id


def test_every_row_has_a_known_class_and_a_source() -> None:
    for row in ROWS:
        assert row.class_id in CLASSES
        assert row.source


def test_a_user_s_function_of_a_kernel_s_name_is_not_the_kernel() -> None:
    assert class_of_frame("tcp_sendmsg_[k]") == "network"
    assert class_of_frame("tcp_sendmsg") is None


def test_shares_demands_and_doubts_of_a_known_profile() -> None:
    stacks = [
        Stack(("m", "clone3", "work"), 60),
        Stack(("m", "[truncated]", "[mariadbd]"), 20),
        Stack(("m", "clone3", "submit_bio_[k]"), 20),
    ]
    found = shares(stacks, "cpu", rate=100, seconds=2.0, throughput=500.0)
    assert found is not None
    assert (found.samples, found.kernel_share, found.unresolved_share, found.truncated_share) == (100, 0.2, 0.2, 0.2)
    first, second = found.classes
    assert (first.id, first.share, second.id, second.share) == ("user", 0.8, "io", 0.2)
    assert first.amount == pytest.approx(0.4)  # 80 samples of 10 ms in 2 s
    assert first.demand_ms == pytest.approx(0.8)  # 0.4 CPU-seconds per second for 500 requests per second
    assert first.low < 0.8 < first.high
    assert first.low == pytest.approx(0.711, abs=0.001)  # Wilson's interval of 80 in 100
    assert first.high == pytest.approx(0.867, abs=0.001)
    assert [one.name for one in found.hottest] == ["work", "[mariadbd]", "submit_bio_[k]"]


def test_threads_are_counted_on_average() -> None:
    stacks = [Stack(("m", "[running or runnable]"), 30), Stack(("m", "[sleeping]", "[futex: lock]"), 10)]
    found = shares(stacks, "threads", rate=20, seconds=1.0, throughput=500.0)
    assert found is not None
    assert [(one.id, one.amount, one.demand_ms) for one in found.classes] == [
        ("running", 1.5, None),
        ("lock", 0.5, None),
    ]


def test_nothing_comes_of_nothing() -> None:
    assert shares([], "cpu", rate=100, seconds=1.0, throughput=1.0) is None
    assert shares([Stack(("a",), 1)], "cpu", rate=0, seconds=1.0, throughput=1.0) is None
    assert flame([]) == ()
    assert per_request(100, 1.0, 0.0) == 0.0


def test_a_demand_is_unknown_where_no_request_was_done() -> None:
    found = shares([Stack(("a",), 5)], "cpu", rate=100, seconds=1.0, throughput=0.0)
    assert found is not None
    assert found.classes[0].demand_ms is None


def test_only_differences_beyond_chance_are_changes() -> None:
    before = Baseline([Stack(("m", "work"), 400), Stack(("m", "submit_bio_[k]"), 20)], 1e-6)
    now = [Stack(("m", "work"), 420), Stack(("m", "submit_bio_[k]"), 200)]
    found = shares(now, "cpu", rate=1000, seconds=1.0, throughput=1000.0, baseline=before)
    assert found is not None
    changes = {one.id: one.change for one in found.classes}
    assert changes["user"] is None
    assert changes["io"] == pytest.approx(10.0)
    boxes = {box.name: box.change for box in flame(now, now_s=1e-6, baseline=before)}
    assert boxes["work"] is None
    assert boxes["submit_bio_[k]"] == pytest.approx(10.0)


def test_the_same_work_at_another_rate_and_throughput_is_no_change() -> None:
    """Twice the samples for twice the requests cost the same each."""
    before = Baseline([Stack(("m", "work"), 300)], per_request(100, 2.0, 100.0))
    now = [Stack(("m", "work"), 600)]
    found = shares(now, "cpu", rate=100, seconds=2.0, throughput=200.0, baseline=before)
    assert found is not None
    assert found.classes[0].change is None


def test_chance_alone_colours_hardly_anything() -> None:
    """Two samplings of the same program, 300 times: a box of 10 % changes about once in a thousand."""
    dice = random.Random(5)

    def sampled() -> list[Stack]:
        functions = dice.choices(range(10), k=500)
        return [Stack(("m", f"f{each}"), functions.count(each)) for each in range(10) if functions.count(each)]

    coloured = boxes = 0
    for _ in range(300):
        drawn = flame(sampled(), now_s=1e-6, baseline=Baseline(sampled(), 1e-6))
        boxes += len(drawn)
        coloured += sum(box.change is not None for box in drawn)
    assert boxes > 3000
    assert coloured <= 0.004 * boxes


STACKS = st.lists(
    st.builds(
        Stack,
        st.lists(st.sampled_from(["a", "b", "c_[k]", "malloc", "[x]"]), min_size=1, max_size=6).map(tuple),
        st.integers(1, 1000),
    ),
    min_size=1,
    max_size=30,
)


@given(STACKS)
def test_boxes_lie_on_their_callers_and_never_overlap(stacks: list[Stack]) -> None:
    boxes = flame(stacks)
    rows: dict[int, float] = {}
    for box in boxes:
        assert box.start >= rows.get(box.depth, 0.0) - 1e-9
        rows[box.depth] = box.start + box.width
        assert 0 < box.width <= 1 + 1e-9
        if box.depth:
            assert any(
                under.depth == box.depth - 1
                and under.start - 1e-9 <= box.start
                and box.start + box.width <= under.start + under.width + 1e-9
                for under in boxes
            )
    assert sum(box.width for box in boxes if box.depth == 0) == pytest.approx(1.0, abs=0.02)


@given(STACKS)
def test_classes_share_everything_out(stacks: list[Stack]) -> None:
    found = shares(stacks, "cpu", rate=100, seconds=1.0, throughput=10.0)
    assert found is not None
    assert sum(one.share for one in found.classes) == pytest.approx(1.0)
    assert all(0 <= one.low <= one.share + 1e-12 and one.share <= one.high + 1e-12 <= 1 + 1e-9 for one in found.classes)


def test_a_wide_profile_stays_a_page() -> None:
    stacks = [Stack(("m", f"f{number}", f"g{number}"), 1 + number % 3) for number in range(5000)]
    assert len(flame(stacks)) <= 1000
