"""Limits: the rules that say where ceiling and use are read, and reading them from measured steps."""
