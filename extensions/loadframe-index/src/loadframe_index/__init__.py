"""A database of the entries of a tree: scan, change log, answers."""
