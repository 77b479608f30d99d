"""Varnish: settings, remedies, counters, and a private cache."""
