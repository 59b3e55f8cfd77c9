-- The table `mlperf_published`, as its documents have it.
FROM read.mlperf_published
