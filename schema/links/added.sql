-- What other documents and the vocabulary say of a row of results or microbenchmarks: a row for each
-- value that fills or replaces one, with the place of the cell that it is taken from, if it is of one.
--
-- mlperf_id: that of an official entry's system, by round and folder; none that is only inferred.
-- platform: the virtual machine of a local run, where the run prints its processor.
-- micro_batch_size: from an exact match with the printed batch, where the result's own document gives
--   none.
-- latency_basis, latency_scope: what the script of an exact or likely match times, and where; a weak
--   match says nothing of it.
-- Any column: what ran, where a document was transcribed under another name. The row's id and cells
--   keep what was transcribed.
-- What has no match stays as it is.
WITH configured AS (
    SELECT
        s.result_id,
        c.document_id,
        c.table_name,
        c.row_number,
        c.match_confidence,
        c.batch_agrees AND r.micro_batch_size IS NULL AS may_fill_batch,
        c.micro_batch_size,
        l.basis,
        l.scope
    FROM read.configurations c
    JOIN source_rows s
        ON s.document_id = c.result_document
        AND s.table_name = c.result_table
        AND s.row_number = c.result_row
    JOIN results r ON r.result_id = s.result_id
    LEFT JOIN known_latency l
        ON l.definition = c.latency_definition
        AND r.latency_ms IS NOT NULL
),
timed AS (
    SELECT *
    FROM configured
    WHERE match_confidence IN ('exact', 'likely')
        AND basis IS NOT NULL
),
renamable AS (
    SELECT 'results' AS relation, result_id AS id, document_id, to_json(r) AS content
    FROM results r
    UNION ALL
    SELECT 'microbenchmarks', microbenchmark_id, document_id, to_json(b)
    FROM microbenchmarks b
)
SELECT
    'results' AS relation,
    r.result_id AS id,
    'mlperf_id' AS column_name,
    i.mlperf_id AS value
FROM results r
JOIN read.mlperf_entries e USING (document_id, table_name, row_number)
JOIN read.mlperf_ids i ON i.round = e.round AND i.system_path = parent_folder(e.path)
WHERE i.confidence <> 'inferred'

UNION ALL BY NAME
SELECT 'results' AS relation, r.result_id AS id, 'platform' AS column_name, m.platform AS value
FROM results r
JOIN read.machines m ON m.run_id = r.run_id AND m.processor = r.platform

UNION ALL BY NAME
SELECT
    'results' AS relation,
    result_id AS id,
    'micro_batch_size' AS column_name,
    micro_batch_size::VARCHAR AS value,
    document_id,
    table_name,
    row_number,
    'micro_batch_size' AS field
FROM configured
WHERE match_confidence = 'exact'
    AND may_fill_batch
    AND micro_batch_size IS NOT NULL

UNION ALL BY NAME
SELECT
    'results' AS relation,
    result_id AS id,
    'latency_basis' AS column_name,
    basis AS value,
    document_id,
    table_name,
    row_number,
    'latency_definition' AS field
FROM timed

UNION ALL BY NAME
SELECT
    'results' AS relation,
    result_id AS id,
    'latency_scope' AS column_name,
    scope AS value
FROM timed

UNION ALL BY NAME
SELECT n.relation, n.id, k.column_name, k.value
FROM renamable n
JOIN known_renamed k ON k.document_id = n.document_id AND json_contains(n.content, k.condition)
