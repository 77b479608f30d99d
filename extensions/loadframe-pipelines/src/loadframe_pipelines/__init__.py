"""Pipelines: what their stages print, and which one limits."""
