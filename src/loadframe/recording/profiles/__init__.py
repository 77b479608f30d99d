"""Profiles: sample what runs with perf, and what all threads are doing from procfs; write collapsed stacks."""
