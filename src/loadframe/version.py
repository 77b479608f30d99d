"""The version of this package: what a report, a recorded profile and a server of ours name themselves by."""

__version__ = "0.1.0"
