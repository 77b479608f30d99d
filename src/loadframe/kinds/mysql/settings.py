"""MariaDB and MySQL as data: their settings."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, tunables_in
from loadframe.knowledge.rows import toml_rows

_BOTH, _MARIADB, _MYSQL = (Path(__file__).with_name(f"{name}settings.toml") for name in ("", "mariadb_", "mysql_"))
MARIADB_CATALOGUE, MARIADB_TUNABLES = catalogue_in(_BOTH, _MARIADB), tunables_in(_MARIADB)
MYSQL_CATALOGUE, MYSQL_TUNABLES = catalogue_in(_BOTH, _MYSQL), tunables_in(_MYSQL)
RESERVED = frozenset(toml_rows(_BOTH)["reserved"])
"""Options that a private instance decides itself."""
