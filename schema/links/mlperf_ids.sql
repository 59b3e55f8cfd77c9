-- The table `mlperf_ids`, as its document has it.
FROM read.mlperf_ids
