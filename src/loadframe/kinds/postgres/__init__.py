"""A PostgreSQL: what is known of it, and what touches it."""
