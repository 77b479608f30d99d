"""Functions of MariaDB by the class of work that they do, and of MySQL where they are not called as in that."""

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
    FrameRow(
        "lock",
        "user",
        r"(TTASEventMutex|PolicyMutex)(<.*>)?::.*|sync_array_wait_event|locksys::.*",
        "MySQL storage/innobase/sync/, lock/",
    ),
    FrameRow("allocation", "user", r"MEM_ROOT::.*|mem_heap_\w+|tc_(malloc|new|delete|free)\w*", "MySQL mysys/, InnoDB"),
)
