"""What the bulk loader (a target) and its clients (a workload) share: frames, tables, statistics."""
