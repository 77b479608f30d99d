"""The programs of a MySQL Cluster: where they are, and how to have them."""

from dataclasses import replace

from loadframe.kinds.package import Package

INSTALL = (
    "MySQL's own packages mysql-cluster-community-data-node, -management-server and -client, or "
    "scripts/build-mysql-cluster FOLDER and FOLDER/bin first in PATH (Debian 12 has no package)"
)
DATA_NODE, MANAGEMENT, CLIENT = "ndbmtd", "ndb_mgmd", "ndb_mgm"
PACKAGE = Package("MySQL Cluster", (DATA_NODE, MANAGEMENT, CLIENT), INSTALL, ("--version",), r"ndb-(\d+\.\d+\.\d+)")
NDBINFO = "ndbinfo_select_all"
LOADED = replace(PACKAGE, programs=(*PACKAGE.programs, NDBINFO))
"""What a cluster needs that is loaded: the last one tells its counters."""
