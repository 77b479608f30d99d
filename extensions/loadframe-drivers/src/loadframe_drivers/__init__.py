"""Load of other programs and of recordings, as workloads: k6, JMeter, Locust, redis-benchmark, memtier, HAR files and
access logs."""
