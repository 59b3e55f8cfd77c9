"""Predicts how long a network takes on an IPU: operators, split search, supersteps, host path."""
