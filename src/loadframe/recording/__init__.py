"""Recording: a light process writes procfs raw, readers make it into metrics later."""
