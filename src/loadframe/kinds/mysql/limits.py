"""Limits of MariaDB and MySQL: the rows of limits.toml for each of them."""

from pathlib import Path

from loadframe.knowledge.limit import LimitRule, limit_rules


def _limits_of(kind: str, **words: str) -> tuple[LimitRule, ...]:
    """Without the rows that name the other kind."""
    rules = limit_rules(Path(__file__).with_name("limits.toml"), kind=kind, **words)
    return tuple(rule for rule in rules if rule.id.startswith(f"{kind}."))


LIMITS = (
    *_limits_of(
        "mariadb",
        documentation="MariaDB documentation",
        tables="open_tables",
        redo_told="Innodb_checkpoint_age and Innodb_checkpoint_max_age",
        redo_setting="innodb_log_file_size",
    ),
    *_limits_of(
        "mysql",
        documentation="MySQL manual",
        tables="tables_kept",
        redo_told="Innodb_redo_log_logical_size and 0.89 of Innodb_redo_log_capacity_resized",
        redo_setting="innodb_redo_log_capacity",
    ),
)
