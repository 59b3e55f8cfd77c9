WITH ipus AS (
    SELECT chip, max(CASE family WHEN 'Mk1' THEN 1 WHEN 'Classic' THEN 2 ELSE 3 END) AS generation
    FROM platforms
    WHERE family IN ({ipu_families})
    GROUP BY chip
),
measured AS (
    SELECT
        m.*, coalesce(i.generation, CASE WHEN m.chip LIKE 'Graphcore%' THEN 0 END) AS generation,
        regexp_replace(m.shape, ' cores=\d+', '') AS work, -- cores are the device's, not the work's
        m.microbenchmark_id NOT IN (SELECT result_id FROM flags WHERE severity = 'error') AS usable
    FROM microbenchmarks m
    LEFT JOIN ipus i USING (chip)
    WHERE metric NOT IN ('share', 'ratio', 'count', 'capacity', 'clock', 'power', 'energy') AND metric NOT LIKE 'variance %'
        AND coalesce(statistic, '') NOT IN ('theoretical', 'per core') AND canonical_value > 0
)
SELECT
    a.document_id, a.operation, a.shape, a.precision, a.metric, a.statistic, a.chip_count,
    a.chip AS ipu, a.chip_confidence AS ipu_confidence, a.interest AS ipu_interest, b.chip AS other, b.interest AS other_interest,
    a.canonical_value AS ipu_value, b.canonical_value AS other_value,
    a.canonical_unit AS unit,
    CASE WHEN a.metric IN ('time', 'latency', 'cycles') THEN b.canonical_value / a.canonical_value
        ELSE a.canonical_value / b.canonical_value
    END AS times_faster,
    concat_ws(
        ', ', CASE WHEN a.sdk_version IS DISTINCT FROM b.sdk_version AND b.generation IS NOT NULL THEN 'SDK' END,
        CASE WHEN a.conditions IS DISTINCT FROM b.conditions THEN 'conditions' END
    ) AS differs,
    a.usable AND b.usable AS usable, a.microbenchmark_id AS ipu_id, b.microbenchmark_id AS other_id
FROM measured a
JOIN measured b
    ON b.document_id = a.document_id AND b.operation = a.operation AND b.work IS NOT DISTINCT FROM a.work
    AND b.precision_printed IS NOT DISTINCT FROM a.precision_printed AND b.metric = a.metric
    AND b.statistic IS NOT DISTINCT FROM a.statistic AND b.chip_count IS NOT DISTINCT FROM a.chip_count
    AND b.chip <> a.chip
WHERE a.generation IS NOT NULL AND (b.generation IS NULL OR b.generation < a.generation)
