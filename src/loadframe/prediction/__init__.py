"""Forecasts from measurements at low loads, and their scoring (docs/predicting.md). Pure."""
