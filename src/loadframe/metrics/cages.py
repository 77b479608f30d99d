"""What a component used of its cage."""

from __future__ import annotations

_ROWS = """
cage.cpu                     | cores   | CPU of the control group of {}
cage.cpu.limit               | cores   | CPU time that the cage of {} allows
cage.cpu.utilization         | share   | CPU time of {}, of what its cage allows
cage.cpu.throttled           | 1/s     | scheduler periods in which the CPU quota of {} ran out
cage.cpu.throttled_share     | share   | time in scheduler periods in which the CPU quota of {} ran out
cage.cpu.throttled_time      | s/s     | time for which CPUs were denied to {}, all CPUs together
cage.memory.usage            | bytes   | memory in the control group of {}, page cache included, largest
cage.memory.peak             | bytes   | most memory in the control group of {} since it was made
cage.memory.limit            | bytes   | memory that the cage of {} allows
cage.memory.hits             | 1/s     | times the cage of {} had no memory left and something had to go
cage.memory.refaults         | 1/s     | file pages of {} read again soon after they were dropped
cage.memory.oom_kills        | 1/s     | processes of {} ended because the cage had no memory left
cage.read_bytes              | bytes/s | bytes read from the disk by {}
cage.read_bytes.limit        | bytes/s | bytes read from the disk by {}, as its cage allows
cage.read_bytes.utilization  | share   | bytes read from the disk by {}, of what its cage allows
cage.write_bytes             | bytes/s | bytes written to the disk by {}
cage.write_bytes.limit       | bytes/s | bytes written to the disk by {}, as its cage allows
cage.write_bytes.utilization | share   | bytes written to the disk by {}, of what its cage allows
cage.reads                   | 1/s     | disk reads of {}
cage.reads.limit             | 1/s     | disk reads of {}, as its cage allows
cage.reads.utilization       | share   | disk reads of {}, of what its cage allows
cage.writes                  | 1/s     | disk writes of {}
cage.writes.limit            | 1/s     | disk writes of {}, as its cage allows
cage.writes.utilization      | share   | disk writes of {}, of what its cage allows
cage.pids                    | count   | processes and threads of {}
cage.pids.limit              | count   | processes and threads that the cage of {} allows
cage.pids.refused            | 1/s     | processes and threads that the cage refused {}
cage.pressure.cpu.some       | share   | time in which some task of {} waited for a CPU
cage.pressure.memory.some    | share   | time in which some task of {} waited for memory
cage.pressure.io.some        | share   | time in which some task of {} waited for I/O
"""
"""By the end of the metric's name."""


def rows(component: str, words: str) -> str:
    """name | unit | what, of one component; words: what people call it."""
    return "".join(f"{component}.{row}\n" for row in _ROWS.replace("{}", words).strip().splitlines())
