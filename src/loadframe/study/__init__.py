"""Declare and validate: from a TOML file to a Study."""

from loadframe.study.declaration import Study
from loadframe.study.reading import load, parse, validate

__all__ = ["Study", "load", "parse", "validate"]
