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
        r.result_id,
        c.*,
        r.micro_batch_size AS own_micro_batch_size,
        l.basis,
        l.scope
    FROM read.configurations c
    JOIN source_rows s
        ON s.document_id = c.result_document
        AND s.table_name = c.result_table
        AND s.row_number = c.result_row
    JOIN results r ON r.result_id = s.result_id
    LEFT JOIN (VALUES {latencies.definition: text, basis, scope}) AS l (definition, basis, scope)
        ON l.definition = c.latency_definition
        AND r.latency_ms IS NOT NULL
        AND c.match_confidence IN ('exact', 'likely')
),
filled AS (
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
        micro_batch_size::VARCHAR AS value,
        document_id,
        table_name,
        row_number,
        'micro_batch_size' AS field
    FROM configured
    WHERE match_confidence = 'exact'
        AND batch_agrees
        AND own_micro_batch_size IS NULL
        AND micro_batch_size IS NOT NULL
    UNION ALL BY NAME
    SELECT
        result_id,
        'latency_basis' AS column_name,
        basis AS value,
        document_id,
        table_name,
        row_number,
        'latency_definition' AS field
    FROM configured
    WHERE basis IS NOT NULL
    UNION ALL BY NAME
    SELECT result_id, 'latency_scope' AS column_name, scope AS value
    FROM configured
    WHERE basis IS NOT NULL
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
UNION ALL BY NAME
SELECT relation, id, column_name, value
FROM renamable
JOIN (VALUES {identities.renamed: document_id, where, column, is})
    AS renamed (document_id, condition, column_name, value) USING (document_id)
WHERE json_contains(content, condition)
