"""A server behind a URL: what is known of it, and what touches it."""
