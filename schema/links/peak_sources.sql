-- The table `peak_sources`, as its documents have it.
FROM read.peak_sources
