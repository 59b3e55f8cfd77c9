-- Accelerators of NVIDIA's one-node DGX A100 entries in MLPerf Training 1.0, in the benchmarks that Graphcore entered.
SELECT
    accelerators::DOUBLE AS value,
    system || ', ' || benchmark AS baseline,
    printf('%d %s', accelerators, accelerator) AS arithmetic,
    ['mlperf_entries:' || round || '/' || path] AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'NVIDIA' AND system LIKE 'dgxa100%' AND nodes = 1
    AND benchmark IN ('bert', 'resnet')
ORDER BY benchmark, path
