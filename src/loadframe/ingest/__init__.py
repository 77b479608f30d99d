"""What the bulk loader (a target) and its clients (a workload) share: the frames between them, the tables they fill."""
