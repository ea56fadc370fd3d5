"""Timings as ratios against named peers in the same run."""
