"""Limits of a MySQL Cluster: the rows of limits.toml."""

from pathlib import Path

from loadframe.knowledge.limit import limit_rules

LIMITS = limit_rules(Path(__file__).with_suffix(".toml"))
