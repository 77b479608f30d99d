"""A service of the reader's own: what its study declares of it, and what touches it."""
