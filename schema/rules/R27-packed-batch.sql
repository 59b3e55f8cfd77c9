-- scope: document
-- Flag the batch of packed sequences: it counts packs, while the throughput counts sequences.
-- The variant says that a row is packed, or its dataset is one of packs. A pack holds several
-- sequences, so the batch is not a number of the items that the throughput counts.
SELECT
    result_id, 'batch_size' AS column_name, 'info' AS severity,
    format('batch {} counts packs, which hold several sequences each', batch_size)
    || coalesce(format('; throughput {} counts sequences', format_figure(throughput)), '')
        AS message
FROM rules.published
WHERE batch_size IS NOT NULL
    AND (
        regexp_matches(variant, '(?i)\bpacked\b')
        OR dataset_printed IN (FROM rules.packed_datasets)
    )
