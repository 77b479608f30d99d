"""From evidence to findings, from findings to remedies, from rounds to a conclusion. Pure."""
