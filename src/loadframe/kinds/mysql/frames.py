"""Functions of MySQL by the class of work that they do, where they are not called as in MariaDB."""

from __future__ import annotations

from loadframe.knowledge.frame import FrameRow

FRAMES = (
    FrameRow(
        "lock",
        "user",
        r"(TTASEventMutex|PolicyMutex)(<.*>)?::.*|sync_array_wait_event|locksys::.*",
        "MySQL storage/innobase/sync/, lock/",
    ),
    FrameRow("allocation", "user", r"MEM_ROOT::.*|mem_heap_\w+|tc_(malloc|new|delete|free)\w*", "MySQL mysys/, InnoDB"),
)
