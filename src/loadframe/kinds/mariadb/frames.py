"""Functions of MariaDB by the class of work that they do."""

from __future__ import annotations

from loadframe.knowledge.frame import FrameRow

FRAMES = (
    FrameRow(
        "lock",
        "user",
        r"ut_delay|(srw_mutex|ssux_lock|srw_lock|rw_lock)\w*(<.*>)?::.*|MDL_(lock|context|wait)::.*"
        r"|thr_(multi_)?(lock|unlock)|lock_wait\w*",
        "MariaDB storage/innobase/sync/, sql/mdl.cc, mysys/thr_lock.c",
    ),
    FrameRow("allocation", "user", r"(alloc|free)_root|my_(malloc|free|realloc)", "MariaDB mysys/"),
)
