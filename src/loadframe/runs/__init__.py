"""The run folder: write, read, upgrade."""
