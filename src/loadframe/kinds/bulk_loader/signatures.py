"""Signatures of the bulk loader, and the traces of their causes."""

from pathlib import Path

from loadframe.knowledge.signature import Trace, signature_rows

SIGNATURES = signature_rows(Path(__file__).with_name("signatures.toml"))

TRACES = {
    "spawn.per_file": Trace("system.processes.created", "rate"),
}
