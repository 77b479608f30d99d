"""MySQL Cluster (NDB): its settings, its config.ini read and written, and the rules for a config.ini."""
