"""MySQL Cluster (NDB): its settings, its config.ini read and written, and the rules that a config.ini has to keep."""
