"""Limits of a MySQL."""

from __future__ import annotations

from loadframe.knowledge.limit import LimitRule
from loadframe.knowledge.mysql_family.limits import limits_of

LIMITS: tuple[LimitRule, ...] = limits_of(
    "mysql",
    "MySQL manual",
    redo_told="Innodb_redo_log_logical_size and 0.89 of Innodb_redo_log_capacity_resized",
    redo_setting="innodb_redo_log_capacity",
    tables="tables_kept",
)
