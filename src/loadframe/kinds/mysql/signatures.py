"""Signatures of MariaDB and MySQL, and the traces of their causes."""

from pathlib import Path

from loadframe.knowledge.signature import Condition, Trace, signature_rows

_KINDS = ("mariadb", "mysql")
SIGNATURES = tuple(
    row
    for kind in _KINDS
    for row in signature_rows(Path(__file__).with_name("signatures.toml"), kind=kind)
    if row.present[0].metric.startswith(f"{kind}.")
)
TRACES = {
    **{f"{kind}.buffer_pool": Trace(f"{kind}.pool_reads") for kind in _KINDS},
    # How full the log is falls with its size alone; pages are flushed in the background, too.
    **{f"{kind}.redo_log": Trace(f"{kind}.pages_flushed", "rate") for kind in _KINDS},
    "lock.metadata": Trace("mysql.metadata_lock_wait"),
}

RULED_OUT_BY = {
    "lock.busy_errors": tuple(
        Condition(f"{kind}.connection_errors_max", ">", 1.0, "it is connections that are refused") for kind in _KINDS
    )
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
