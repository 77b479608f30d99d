"""Arrays in, results out."""
