"""An nginx: what is known of it, and what touches it."""
