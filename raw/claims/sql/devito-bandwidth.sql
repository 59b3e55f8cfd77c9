-- Bytes for one operation that bandwidth and rate of one IPU imply, at the mesh of 360^3: the original and the reproduction.
SELECT
    b.canonical_value / (1000 * r.value) AS value, b.publisher AS baseline,
    printf('%g TB/s / %g TFLOPS = %.2f', b.value, r.value, b.value / r.value) AS arithmetic,
    ['microbenchmarks:' || b.microbenchmark_id, 'microbenchmarks:' || r.microbenchmark_id] AS inputs
FROM microbenchmarks AS b
JOIN microbenchmarks AS r
    ON r.document_id = b.document_id AND r.chip = b.chip AND r.chip_count = b.chip_count AND r.shape = b.shape
    AND r.conditions = b.conditions AND r.metric = 'arithmetic throughput' AND r.statistic IS NOT DISTINCT FROM b.statistic
WHERE b.metric = 'bandwidth' AND b.chip = 'GC200' AND b.chip_count = 1 AND contains(b.shape, 'mesh=360x360x360')
    AND (
        b.document_id = 'independent-simehaa-pde'
        OR b.document_id = 'independent-devito-heat3d' AND contains(b.conditions, 'HeatEquationOptimized; table')
    )
ORDER BY value, b.microbenchmark_id
