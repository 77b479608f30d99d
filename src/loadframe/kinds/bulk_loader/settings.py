"""The bulk loader as data: its settings."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in

CATALOGUE = catalogue_in(Path(__file__).with_name("settings.toml"))
SHARD = "shard_"
"""Before the name of a setting of its shards."""
