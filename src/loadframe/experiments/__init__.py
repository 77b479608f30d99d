"""What is done with steps: each experiment with what it does and what it writes."""
