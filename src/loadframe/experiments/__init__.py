"""What is done with steps: the experiments, and the records that they write."""
