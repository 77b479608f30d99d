"""From evidence to findings, remedies, and a conclusion. Pure."""
