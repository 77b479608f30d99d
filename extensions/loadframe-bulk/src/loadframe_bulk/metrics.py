"""The components of a bulk loader: its counters are those of its shards."""

IN_FRONT = ("loader",)
