"""PostgreSQL: settings, remedies, counters, and private and attached servers."""
