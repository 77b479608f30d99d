"""Signatures of PostgreSQL, and the traces of their causes."""

from pathlib import Path

from loadframe.knowledge.signature import Condition, Trace, signature_rows

SIGNATURES = signature_rows(Path(__file__).with_name("signatures.toml"))

TRACES = {
    "postgres.shared_buffers": Trace("postgres.blocks_read"),
    "postgres.checkpoints": Trace("postgres.wal_pages", price=False),
}

RULED_OUT_BY = {
    "lock.busy_errors": (Condition("postgres.connections_refused", ">", 1.0, "it is connections that are refused"),)
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
