"""Notebooks, kept as scripts beside the executed files: see `notebooks.build`."""
