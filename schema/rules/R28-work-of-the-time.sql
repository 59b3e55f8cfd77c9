-- scope: document
-- Flag a time to result with what the configuration times: no page says which work its result is. A time to train ends at
-- a quality that the benchmark sets. A time to result ends where the script does, so two documents may print times of
-- different work under one name. Only exact and likely matches count.
SELECT
    result_id, 'time_to_result_s' AS column_name, 'info' AS severity,
    format(
        'the page does not say what was done in {} s; {}: {}',
        format_figure(time_to_result_s), command, note
    ) AS message
FROM rules.configured
WHERE time_to_result_s IS NOT NULL AND note IS NOT NULL
