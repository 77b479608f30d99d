"""Signatures of the bulk loader, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.signature import Condition, Rank, Signature, Trace

SIGNATURES = (
    Signature(
        id="spawn.per_file",
        rank=Rank.PROCESSES,
        title="a process is started for each file, which costs small files the most",
        present=(
            Condition(
                "loader.paging.minor_faults",
                ">=",
                100.0,
                "a process that starts touches hundreds of pages for the first time",
                per_request=True,
            ),
            Condition("system.processes.created", ">=", 0.2, "one request in five starts a process", per_request=True),
        ),
        absent=(Condition("target.cpu.hottest_thread", ">=", 0.9, "one thread has the CPU, not many short ones"),),
        explanation="Starting a process, and its connections, takes longer than the work on a small file.",
        explains_falling=True,
        explains=("pipeline.OPEN",),
    ),
)

TRACES = {
    "spawn.per_file": Trace("system.processes.created", "rate"),
}
