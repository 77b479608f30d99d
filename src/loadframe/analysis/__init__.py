"""Curve, knee, cliff, scalability law, comparison, warm-up, search, exhaustion: arrays in, results out."""
