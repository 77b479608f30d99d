"""The version of this package, in reports, recorded profiles and our servers' names."""

__version__ = "0.1.0"
