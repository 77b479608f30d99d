"""The test bench: takes steps, sweeps levels, compares treatments. The lab decides what to do with it."""
