"""Solvers that make the data. They know nothing of neural networks."""
