"""Signatures of SQLite, and the traces of their causes."""

from pathlib import Path

from loadframe.knowledge.signature import Trace, signature_rows

SIGNATURES = signature_rows(Path(__file__).with_name("signatures.toml"))

TRACES = {
    "lock.writer": Trace("workload.lock_waiting", "waiting"),
}
