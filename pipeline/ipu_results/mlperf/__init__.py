"""MLPerf Training: from the official logs of a round to the score of every entry.

layout (which files make an entry) → log (one file) → score (one entry by the official rule) → records (what is told).
"""
