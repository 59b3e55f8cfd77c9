-- scope: document
-- Flag the rate of a first epoch or step: it includes start-up, such as compilation.
SELECT
    result_id, 'throughput' AS column_name, 'warn' AS severity,
    format(
        'the rate of {} includes start-up; it is not to be compared with a steady rate', conditions
    ) AS message
FROM rules.published
WHERE throughput IS NOT NULL
    AND regexp_matches(conditions, '(?i)\b(?:1st epoch|epoch 1 of|step 0)\b')
