"""Experiments: compose solvers and sino_jax into the tables and figures of the paper."""
