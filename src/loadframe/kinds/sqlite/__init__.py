"""SQLite: settings, remedies, and its file as a target."""
