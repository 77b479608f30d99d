"""The bulk loader: what is known of it, and what touches it."""
