-- Accelerators of NVIDIA's one-node DGX A100 entries in MLPerf Training 1.0, in the benchmarks that Graphcore entered.
SELECT
    chip_count::DOUBLE AS value,
    platform || ', ' || benchmark AS baseline,
    printf('%d %s', chip_count, chip_printed) AS arithmetic,
    ['mlperf_entries:' || round || '/' || path] AS inputs
FROM mlperf_entries
WHERE round = '1.0' AND submitter = 'NVIDIA' AND platform LIKE 'dgxa100%' AND nodes = 1
    AND benchmark IN ('bert', 'resnet')
ORDER BY benchmark, path
