"""Experiments: compose solvers and sino_jax into the tables and figures of the paper.

one row of a table     darcy helmholtz burgers navier_stokes navier_stokes_spacetime kolmogorov
                       tiny_labels; each has its config in `configs`
rows without training  baselines (classical, simulated), distances
many rows              campaign (queue, queue_report) with the files of `campaigns`, estimate
tables and pages       tables, trials, summary, pages, kolmogorov_report, tiny_labels_report;
                       paper has the numbers of the paper
figures                figures, comparison, overview, idea, and the modules ``*_figures``
trained models         decomposition, diagnostics, hybrid, publish
other commands         demo, memory
what rows share        runner, training, models: from a config to a result
                       naming, outcome, trained_run: what a row is called and leaves behind
"""
