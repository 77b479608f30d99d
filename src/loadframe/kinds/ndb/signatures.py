"""Signatures of a MySQL Cluster: the rows of signatures.toml, and where the working of their causes shows."""

from collections.abc import Mapping
from pathlib import Path

from loadframe.knowledge.signature import Trace, signature_rows

SIGNATURES = signature_rows(Path(__file__).with_suffix(".toml"))

TRACES: Mapping[str, Trace] = {
    "ndb.sql_pool": Trace("ndb.sql.waiting", "waiting"),
    **{f"ndb.{kind}_threads": Trace("target.cpu.cores", "spread") for kind in ("ldm", "tc", "recv", "send", "main")},
    "ndb.threads_share_cpu": Trace("target.cpu.run_delay", "waiting"),
    "ndb.redo_log": Trace("workload.errors", price=False),
    "ndb.sql_node": Trace("ndb.sql.cores", "spread"),
}
