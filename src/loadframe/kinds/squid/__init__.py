"""A Squid: what is known of it, and what touches it."""
