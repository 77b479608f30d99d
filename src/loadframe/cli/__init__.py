"""The command line: one thin file per verb, written with the Python API."""
