"""Benchmarks: each measures two or more ways of doing one thing side by side in one run and prints
the ratio.
"""
