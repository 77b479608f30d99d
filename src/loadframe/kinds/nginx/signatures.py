"""Signatures of nginx, and the traces of their causes."""

from pathlib import Path

from loadframe.knowledge.signature import Condition, Trace, signature_rows

SIGNATURES = signature_rows(Path(__file__).with_name("signatures.toml"))

TRACES = {
    "nginx.worker_processes": Trace("target.cpu.cores", "passes", ceiling="nginx.workers"),
    "nginx.blocked_workers": Trace("nginx.worker_blocked", "share"),
}

RULED_OUT_BY = {
    "lock.busy_errors": (
        Condition("nginx.workers", ">=", 1.0, "a web server has no lock that a request could time out on"),
    )
}
"""By a cause that is not of one kind of server alone: what is seen where it is another cause."""
