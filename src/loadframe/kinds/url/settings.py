"""A running server known by its address alone, as data: what a study says of it."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in

CATALOGUE = catalogue_in(Path(__file__).with_name("settings.toml"))
