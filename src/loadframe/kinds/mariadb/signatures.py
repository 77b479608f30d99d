"""Signatures of MariaDB, and the traces of their causes."""

from __future__ import annotations

from loadframe.knowledge.mysql_family.signatures import ruled_out_by, signatures_of, traces_of

SIGNATURES = signatures_of("mariadb")
TRACES = traces_of("mariadb")
RULED_OUT_BY = ruled_out_by("mariadb")
