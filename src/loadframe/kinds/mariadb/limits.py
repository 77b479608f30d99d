"""Limits of a MariaDB."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule
from loadframe.knowledge.mysql_family.limits import limits_of

_OF_FULL_CACHE = LimitRule(
    id="mariadb.files_of_full_cache",
    title="the files of a full table cache in all its instances",
    use="mariadb.files_of_full_cache",
    ceiling="mariadb.open_files_limit",
    source="MariaDB 10.11's start: table_open_cache x instances x 2 (two files per MyISAM table); seen: 12000 x 8 "
    "x 2 + 184 wanted; near: all",
    configured="open_files_limit",
    chain=("process.open_files",),
    near=1.0,
    pressure=True,
)

LIMITS: tuple[LimitRule, ...] = limits_of(
    "mariadb",
    "MariaDB documentation",
    redo_told="Innodb_checkpoint_age and Innodb_checkpoint_max_age",
    redo_setting="innodb_log_file_size",
    more_files=(_OF_FULL_CACHE,),
)
