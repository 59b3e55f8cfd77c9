"""Recompute: what the documents claim, computed again from the dataset, with the verdict that
follows by rule.

The package is not called `claims` because `ipu_results.claims()` is a function of the public
interface.
"""
