"""Constants of physics checks that rules and comparisons share; needs no other package."""

from __future__ import annotations

FLOP_PER_MAC = 2
TRAINING_PASSES = 3  # forward, and twice as much backward
GIGA_PER_TERA = 1000
MIN_BATCHES_IN_FLIGHT = 0.95  # 1 but for the rounding of printed figures
MAX_BATCHES_IN_FLIGHT = 16  # a convention: twice the most that a row of the record implies (8.04, STC P920)
PER_ITEM = "per-item"  # latency_basis
