-- What each result was measured under, as text by the name of the column.
SELECT result_id, map_from_entries(list((name, value))) AS conditions
FROM (
    UNPIVOT (
        SELECT
            result_id,
            COLUMNS([
                'task', 'model', 'phase', 'sequence_length', 'sparsity', 'item', 'batch_size',
                'latency_basis', 'origin', 'benchmark', 'division', 'dataset', 'platform', 'chip',
                'publisher', 'precision', 'framework', 'sdk_version', 'chip_count',
                'latency_scope', 'variant', 'conditions', 'mlperf_round', 'submitter'
            ])::VARCHAR
        FROM results
    ) ON COLUMNS(* EXCLUDE (result_id))
)
GROUP BY result_id
