"""Benchmark the runner: what its loop costs, how its rows hold up, and what the machine can do at
best.
"""
