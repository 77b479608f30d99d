"""Functions of PostgreSQL by the class of work that they do."""

from loadframe.knowledge.frame import FrameRow

FRAMES = (
    FrameRow(
        "lock", "user", r"s_lock|perform_spin_delay|LWLock\w+|LockAcquire\w*|ProcSleep", "PostgreSQL storage/lmgr/"
    ),
    FrameRow("allocation", "user", r"palloc0?|pfree|AllocSet\w+", "PostgreSQL utils/mmgr/"),
)
