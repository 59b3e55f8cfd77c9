"""Predictions written before the figures of their rows were read, and the command that repeats
them.
"""
