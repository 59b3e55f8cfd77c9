-- Bytes that a step moves for one cell of the mesh, by the bandwidth, mesh and time of the 2D problem: five numbers of four
-- bytes are plausible, and a thousandth of them is not.
SELECT
    b.canonical_value * 1e9 * t.value / (regexp_extract(b.shape, 'mesh=(\d+)x', 1)::DOUBLE ** 2 * 1000) AS value,
    b.chip_count || ' IPUs, ' || b.shape AS baseline,
    printf('%g %s x %g s over the cells and 1,000 steps', b.value, b.unit, t.value) AS arithmetic,
    ['microbenchmarks:' || b.microbenchmark_id, 'microbenchmarks:' || t.microbenchmark_id] AS inputs
FROM microbenchmarks AS b
JOIN microbenchmarks AS t
    ON t.document_id = b.document_id AND t.shape = b.shape AND t.chip = b.chip AND t.conditions = b.conditions AND t.metric = 'time'
WHERE b.document_id = 'independent-simehaa-pde' AND b.chip = 'GC200' AND b.metric = 'bandwidth' AND b.operation = 'heat equation 2D'
    AND t.operation = b.operation
ORDER BY b.chip_count, b.microbenchmark_id
