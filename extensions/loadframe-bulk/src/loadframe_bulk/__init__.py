"""Bulk ingest: a loader in front of database shards (a target), and the clients that load files (a workload)."""
