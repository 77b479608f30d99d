"""Limits of an SQLite database: the rows of limits.toml."""

from pathlib import Path

from loadframe.knowledge.limit import limit_rules

LIMITS = limit_rules(Path(__file__).with_name("limits.toml"))
