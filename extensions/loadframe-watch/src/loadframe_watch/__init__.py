"""A watch of a service in production: its samples, limits and alarms, and what its data say of its load."""
