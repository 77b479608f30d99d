"""Curve, knee, cliff, comparison, warm-up, search: arrays in, results out."""
