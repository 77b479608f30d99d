"""Cages: the control groups of a component, with what they allow."""
