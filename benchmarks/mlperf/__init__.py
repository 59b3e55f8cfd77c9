"""Score a round of MLPerf Training with `ipu-results mlperf` and with the official summarizer."""
