"""Whether the programs of a cluster are here, and how to have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.kinds import registry
from loadframe_ndb.nodes import PACKAGE


def test_the_doctor_names_what_is_missing_and_how_to_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "ndb_mgm").write_text("#!/bin/sh\n")
    (tmp_path / "ndb_mgm").chmod(0o755)
    rows = {row.what: row for row in registry.check() if row.kind == "ndb"}
    assert {name: row.present for name, row in rows.items()} == {
        "ndbmtd": None,
        "ndb_mgmd": None,
        "ndb_mgm": str(tmp_path / "ndb_mgm"),
        "ndbinfo_select_all": None,
    }
    for row in rows.values():
        assert "mysql-cluster-community-data-node" in row.how_to_get_it
        assert "scripts/build-mysql-cluster" in row.how_to_get_it
    assert (Path(__file__).parents[3] / "scripts/build-mysql-cluster").stat().st_mode & 0o111


def test_its_version_is_the_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL's own comes first in what a program says (ndb_opts.cpp)."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    (tmp_path / "ndbmtd").write_text("#!/bin/sh\necho 'MySQL distrib mysql-8.0.41 ndb-8.0.42, for Linux (x86_64)'\n")
    (tmp_path / "ndbmtd").chmod(0o755)
    assert PACKAGE.version() == "MySQL Cluster 8.0.42"
