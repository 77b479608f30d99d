"""Curve, knee, cliff, scalability law, comparison, warm-up, search, saturation: arrays in, results out."""
