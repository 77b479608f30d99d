"""Servers under test, one file each, with their catalogues of settings."""
