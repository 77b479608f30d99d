"""The journal: what was changed, from what, to what, and what was read back."""
