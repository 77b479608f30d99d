"""The bulk loader: its settings and remedies, and the code that runs it."""
