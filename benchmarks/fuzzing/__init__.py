"""What benchmarks/fuzz.py is made of: inputs, mutations, surfaces, and the processes that carry them out."""
