"""What a MariaDB counts."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived
from loadframe.knowledge.mysql_family.metrics import agreements_of, derived_of, rows_of

ROWS = (
    rows_of("mariadb")
    + """\
mariadb.table_cache_instances     | count | instances of the table cache in use
mariadb.files_of_full_cache       | count | files of a full table cache in all its instances
"""
)
"""name | unit | what."""


def _files_of_full_cache(tables: float, instances: float) -> float:
    """Two files per MyISAM table (data and index), in every instance of the cache."""
    return 2 * tables * instances


DERIVED = (
    *derived_of("mariadb"),
    Derived(
        "mariadb.files_of_full_cache",
        ("mariadb.table_open_cache", "mariadb.table_open_cache_instances"),
        _files_of_full_cache,
    ),
)

AGREEMENTS = agreements_of("mariadb")
