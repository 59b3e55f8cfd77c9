-- Steps that rate and time give for the mesh, in the README of Devito: read as seconds.
SELECT
    1e9 * r.value * t.value / regexp_extract(r.shape, 'mesh=(\d+)x', 1)::DOUBLE ** 3 AS value,
    r.operation || ', ' || r.chip_count || ' IPUs' AS baseline,
    printf('%g GPts/s x %g s over the mesh', r.value, t.value) AS arithmetic,
    ['microbenchmarks:' || r.microbenchmark_id, 'microbenchmarks:' || t.microbenchmark_id] AS inputs
FROM microbenchmarks AS r
JOIN microbenchmarks AS t
    ON t.document_id = r.document_id AND t.operation = r.operation AND t.chip_count = r.chip_count AND t.metric = 'time'
    AND t.conditions = r.conditions
WHERE r.document_id = 'independent-devito-heat3d' AND r.metric = 'lattice update rate'
ORDER BY r.operation, r.chip_count
