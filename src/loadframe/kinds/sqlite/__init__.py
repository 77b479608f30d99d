"""A SQLite file: what is known of it, and what touches it."""
