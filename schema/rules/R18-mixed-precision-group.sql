-- scope: document
-- Flag rows of one model, variant and machine that were run at different precisions.
WITH groups AS (
    SELECT
        result_id, precision_printed,
        list(DISTINCT precision_printed) OVER (
            PARTITION BY document_id, table_name, model_printed, variant, platform
        ) AS precisions
    FROM rules.published
    WHERE activation_bits IS NOT NULL
)
SELECT
    result_id, 'precision_printed' AS column_name, 'info' AS severity,
    format(
        '{} in a group of rows that mixes {}: same model, variant and platform',
        precision_printed, array_to_string(list_sort(precisions), ' and ')
    ) AS message
FROM groups
WHERE len(precisions) > 1
