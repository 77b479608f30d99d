"""Load of other programs and of recordings, as workloads: k6, JMeter, Locust, pgbench, sysbench, redis-benchmark,
memtier, HAR files and access logs."""
