"""A Varnish: what is known of it, and what touches it."""
