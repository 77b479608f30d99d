"""The hardware a target is allowed: resource limits, CPUs, user; and leases, so that nothing started stays running."""
