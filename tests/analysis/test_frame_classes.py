"""What of a CPU profile is the collecting of garbage, by the names of functions."""

from __future__ import annotations

import pytest

from loadframe.analysis.stacks import collecting, collects
from loadframe.model import Stack


@pytest.mark.parametrize(
    "function",
    [
        "v8::internal::ConcurrentMarking::RunMajor",
        "v8::internal::MarkingVisitorBase<v8::internal::ConcurrentMarkingVisitor, v8::internal::X>::Visit",
        "v8::internal::Sweeper::LocalSweeper::ParallelSweepPage",
        "v8::internal::(anonymous namespace)::RememberedSetUpdatingItem::Process",
        "v8::internal::Heap::PerformGarbageCollection",
        "runtime.gcBgMarkWorker",
        "runtime.gcBgMarkWorker.func2",
        "runtime.gcDrainMarkWorkerDedicated",
        "runtime.gcAssistAlloc1",
        "runtime.scanobject",
        "runtime.(*sweepLocked).sweep",
        "gc_collect_main",
        "deduce_unreachable",
        "G1ParScanThreadState::copy_to_survivor_space",
        "PSParallelCompact::invoke",
        "DefNewGeneration::collect",
        "G1CollectedHeap::do_collection_pause_at_safepoint",
    ],
)
def test_functions_of_collectors_are_known(function: str) -> None:
    assert collects(function)


@pytest.mark.parametrize(
    "function",
    [
        "v8::internal::Heap::AllocateRaw",
        "v8::internal::Runtime_StackGuard",
        "v8::internal::compiler::PipelineCompilationJob::ExecuteJobImpl",
        "runtime.mallocgc",
        "runtime.gcWriteBarrier2",
        "runtime.schedule",
        "_PyObject_GC_New",
        "PyObject_GC_Del",
        "G1BarrierSet::write_ref_field_pre",
        "GenCollectedHeap::mem_allocate",
        "G1CollectedHeap::attempt_allocation_slow",
        "collect",
        "[node]",
    ],
)
def test_what_the_program_does_for_a_collector_is_its_own_work(function: str) -> None:
    assert not collects(function)


def test_all_that_a_collector_calls_is_its_time() -> None:
    stacks = [
        Stack(("node", "v8::internal::Heap::CollectGarbage", "asm_exc_page_fault_[k]", "clear_page_[k]"), 30),
        Stack(("node", "uv_run", "do_work"), 60),
        Stack(("node", "v8::internal::Sweeper::RawSweep"), 10),
    ]
    found = collecting(stacks)
    assert found is not None
    assert found.share == 0.4
    assert 0.3 < found.low < 0.4 < found.high < 0.5


def test_where_no_function_of_a_collector_has_a_name_nothing_is_known() -> None:
    assert collecting([Stack(("node", "[node]"), 100)]) is None
    assert collecting([]) is None
