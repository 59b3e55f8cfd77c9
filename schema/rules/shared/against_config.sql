-- Conditions that the public configuration behind a row contradicts: what R52 flags. A configuration says its SDK by its
-- release, its framework by its folder, and task, number of chips and sequence length by its name. One that says nothing of
-- a condition fits all. Only exact matches count.
WITH names AS (
    SELECT
        *,
        regexp_extract(tag, '^v(\d+\.\d+)', 1) AS release,
        regexp_extract(path, '(tensorflow|pytorch|popart)\d?/', 1) AS folder,
        regexp_extract(lower(benchmark), 'infer|train') AS work,
        CASE
            WHEN contains(benchmark, 'IPU-M2000') THEN '4'
            ELSE regexp_extract(lower(benchmark), 'pod(\d+)', 1)
        END AS chips,
        regexp_extract(
            lower(concat_ws(' ', benchmark, data_fed)),
            '(?:sl|sequence length |int8 |fp16 )(\d+)', 1
        ) AS length,
        regexp_extract(variant, '{sequence_length}', 1) AS printed_length
    FROM rules.configured
    WHERE match_confidence = 'exact'
), compared AS (
    SELECT
        result_id, command,
        unnest([
            {
                column_name: 'sdk_version', printed: sdk_version, configured: release,
                fits: starts_with(sdk_version, release)
            },
            {
                column_name: 'framework', printed: framework, configured: folder,
                fits: starts_with(lower(framework), folder)
            },
            {
                column_name: 'task', printed: task, configured: work,
                fits: starts_with(task, work)
            },
            {
                column_name: 'platform', printed: platform, configured: chips || ' chips',
                fits: chips IN ('', chip_count::VARCHAR)
            },
            {
                column_name: 'variant', printed: variant, configured: 'SL' || length,
                fits: length IN ('', printed_length) OR printed_length = ''
            }
        ], recursive := TRUE)
    FROM names
)
SELECT result_id, column_name, printed, configured, command
FROM compared
WHERE NOT fits
