"""Renders records as page, text, JSON and pictures; touches no server and imports no other room's code."""
