"""A server behind a URL as a target."""
