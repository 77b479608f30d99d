"""A service of the user's own: what its study declares of it, and the code that runs or attaches to it."""
