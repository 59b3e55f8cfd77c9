-- scope: document
-- Flag a printed batch that is not the configuration's: micro-batch × replicas × accumulation. Only exact and likely
-- matches count. A likely match differs from the row in one point, which may be the batch. So it is only information,
-- without a suggestion, and the message has the note of the match.
WITH products AS (
    SELECT
        *,
        match_confidence = 'exact' AS is_exact,
        concat_ws(' × ', script_micro_batch, replicas, gradient_accumulation) AS product
    FROM rules.configured
    WHERE batch_size <> global_batch_from_config
)
SELECT
    result_id, 'batch_size' AS column_name, if(is_exact, 'warn', 'info') AS severity,
    format(
        'prints batch {}; {} gives {}{}{}', batch_size, command, global_batch_from_config,
        if(contains(product, ' × '), ' = ' || product, ''), coalesce('; ' || note, '')
    ) AS message,
    if(is_exact, CAST(global_batch_from_config AS VARCHAR), NULL) AS suggested
FROM products
