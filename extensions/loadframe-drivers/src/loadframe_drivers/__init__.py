"""Load that other programs send, or that was recorded, as workloads: k6, JMeter, Locust, redis-benchmark and memtier, HAR
files, access logs."""
