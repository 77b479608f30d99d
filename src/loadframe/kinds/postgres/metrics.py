"""Metrics of PostgreSQL that follow from its counters."""

from loadframe.knowledge.metric import connections, derived, of_both, ratio, requests, share

DERIVED = (
    derived("postgres.buffer_miss_share", "blocks_read blocks_hit", of_both),
    derived("postgres.requested_share", "checkpoints_requested checkpoints_timed", of_both),
    derived("postgres.checkpoint_due", "wal_since_checkpoint checkpoint_distance", ratio),
    derived(
        "postgres.spill_share",
        "temp_files commits rollbacks",
        lambda spilled, commits, rollbacks: share(spilled, commits + rollbacks),
    ),
    derived(
        "postgres.memory_promised",
        "shared_buffers.asked max_connections.asked work_mem.asked autovacuum_max_workers.asked "
        "maintenance_work_mem.asked",
        # postgresqltuner's arithmetic: one and a half sorts or hashes for each connection
        lambda buffers, connections, work, workers, maintenance: (
            buffers + connections * work * 1.5 + workers * maintenance
        ),
    ),
)

AGREEMENTS = (
    requests(
        "postgres.commits",
        "postgres.rollbacks",
        also=(
            "postgres.blocks_hit",
            "postgres.blocks_read",
            "postgres.temp_files",
            "postgres.temp_bytes",
            "postgres.deadlocks",
            "postgres.wal_records",
            "postgres.wal_pages",
        ),
    ),
    connections("postgres.connections"),
)
