"""Remedies of PostgreSQL."""

from loadframe.knowledge.remedy import Builders, Situation, enlarged, raised_alone, server_change, text
from loadframe.model import Price, Remedy

DOCUMENTATION = "PostgreSQL documentation"
_more_connections = raised_alone(
    "postgres.max_connections",
    "allow {} connections",
    "the connections that the highest level opens, plus a fifth",
    "each connection is a process with memory of its own; needs a restart",
    f"{DOCUMENTATION}, max_connections",
)
_more_shared_buffers = enlarged(
    "shared_buffers",
    "postgres.shared_buffers",
    "set the shared buffers to {}",
    "pages requested again stay in memory",
    "memory, which the server takes as it fills; needs a restart",
    "postgres",
    documentation=DOCUMENTATION,
)
_larger_wal = enlarged(
    "max_wal_size",
    "postgres.checkpoints",
    "let the write-ahead log grow to {}",
    "checkpoints come less often, so fewer pages go whole into the log",
    "disk space, and a longer recovery after a crash",
    "postgres",
    documentation=DOCUMENTATION,
    factor=32,
    on_disk=True,
)


def _commit_without_waiting(situation: Situation) -> Remedy | None:
    asks = text(situation.effective, "synchronous_commit")
    if situation.target_kind != "postgres" or asks == "off" or text(situation.effective, "fsync") == "false":
        return None
    return Remedy(
        id="postgres.synchronous_commit.off",
        title="commit without waiting for the disk",
        addresses=("disk.fsync",),
        changes=(server_change(situation, "synchronous_commit", "off", "commits no longer wait for the disk"),),
        price=Price(
            durability="the last commits, of up to three times wal_writer_delay (0.6 s), may be lost when the server "
            "or the machine dies; the database stays consistent"
        ),
        source=f"{DOCUMENTATION}, Asynchronous Commit",
    )


def _no_jit(situation: Situation) -> Remedy:
    return Remedy(
        id="postgres.jit.off",
        title="run statements without compiling them",
        addresses=("postgres.jit",),
        changes=(server_change(situation, "jit", False, "no statement is compiled"),),
        price=Price(note="statements that compute over many rows may take longer"),
        source=f"{DOCUMENTATION}, Just-in-Time Compilation",
    )


BUILDERS: Builders = {
    "postgres.max_connections": (_more_connections,),
    "postgres.shared_buffers": (_more_shared_buffers,),
    "postgres.checkpoints": (_larger_wal,),
    "postgres.jit": (_no_jit,),
    "disk.fsync": (_commit_without_waiting,),
}
