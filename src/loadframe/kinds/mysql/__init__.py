"""MariaDB and MySQL: settings, remedies, counters, and private and attached servers."""
