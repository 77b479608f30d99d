"""nginx: settings, remedies, counters, and a private web server or cache."""
