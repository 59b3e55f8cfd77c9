-- What other documents and the vocabulary say of a row of results or microbenchmarks: a row for each
-- value that fills or replaces one, with the place of the cell that it is taken from, if it is of one.
--
-- mlperf_id: that of an official entry's system, by round and folder; none that is only inferred.
-- platform: the virtual machine of a local run, where the run prints its processor.
-- micro_batch_size: from an exact match with the printed batch, where the result's own document gives
--   none.
-- latency_basis, latency_scope: what the script of an exact or likely match times, and where; a weak
--   match says nothing of it.
-- chip_confidence, chip_printed, chip_source: how the chip of a microbenchmark is known.
-- Any other column: what ran, where a document was transcribed under another name. The row's id and cells
--   keep what was transcribed.
-- What has no match stays as it is.
WITH filled AS (
    SELECT r.result_id, 'mlperf_id' AS column_name, i.mlperf_id AS value
    FROM results r
    JOIN read.mlperf_entries e USING (document_id, table_name, row_number)
    JOIN read.mlperf_ids i ON i.round = e.round AND i.system_path = parent_folder(e.path)
    WHERE i.confidence <> 'inferred'
    UNION ALL BY NAME
    SELECT r.result_id, 'platform' AS column_name, m.platform AS value
    FROM results r
    JOIN machines m ON m.run_id = r.run_id AND m.processor = r.platform
    UNION ALL BY NAME
    SELECT
        result_id,
        'micro_batch_size' AS column_name,
        c.micro_batch_size::VARCHAR AS value,
        c.document_id,
        c.table_name,
        c.row_number,
        'micro_batch_size' AS field
    FROM configured c
    JOIN results r USING (result_id)
    WHERE c.match_confidence = 'exact'
        AND c.batch_agrees
        AND r.micro_batch_size IS NULL
        AND c.micro_batch_size IS NOT NULL
    UNION ALL BY NAME
    SELECT result_id, v.*, c.document_id, c.table_name, c.row_number
    FROM configured c
    JOIN results r USING (result_id),
    (VALUES
        ('latency_basis', c.latency_basis, 'latency_definition'),
        ('latency_scope', c.latency_scope, NULL)
    ) AS v (column_name, value, field)
    WHERE c.match_confidence IN ('exact', 'likely')
        AND c.latency_basis IS NOT NULL
        AND r.latency_ms IS NOT NULL
),
renamable AS (
    SELECT 'results' AS relation, result_id AS id, document_id, to_json(r) AS content
    FROM results r
    UNION ALL
    SELECT 'microbenchmarks', microbenchmark_id, document_id, to_json(b)
    FROM microbenchmarks b
)
SELECT 'results' AS relation, result_id AS id, * EXCLUDE (result_id)
FROM filled
-- a result that is printed twice may have two configurations: the first one fills it
QUALIFY row_number() OVER (
        PARTITION BY result_id, column_name ORDER BY document_id, table_name, row_number
    ) = 1
UNION ALL BY NAME
SELECT relation, id, column_name, value
FROM renamable
JOIN (VALUES {identities.renamed: document_id, where, column, is})
    AS renamed (document_id, condition, column_name, value) USING (document_id)
WHERE json_contains(content, condition)
UNION ALL BY NAME
SELECT 'microbenchmarks' AS relation, microbenchmark_id AS id, v.*
FROM microbenchmarks m
JOIN detail.chip_identities k USING (document_id, chip),
(VALUES
    ('chip_confidence', k.chip_confidence),
    ('chip_printed', k.chip_printed),
    ('chip_source', k.chip_source)
) AS v (column_name, value)
WHERE v.value IS NOT NULL
