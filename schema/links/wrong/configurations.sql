-- Configurations that contradict themselves, the vocabulary, or the row that they are of.
WITH filled AS (  -- what a row says besides its place, the place of the figures and a note
    SELECT document_id, table_name, row_number, list(name) AS names
    FROM (
        UNPIVOT (SELECT COLUMNS(*)::VARCHAR FROM read.configurations)
        ON COLUMNS(* EXCLUDE (
            document_id, table_name, row_number, locator,
            result_document, result_table, result_row, note
        ))
        INTO NAME name VALUE text
    )
    GROUP BY ALL
),
described AS (
    SELECT
        c.*,
        -- a row names its configuration completely, or holds a note alone
        list_filter(
            ['repository', 'tag', 'path', 'benchmark', 'match_confidence'],
            lambda name: NOT list_contains(f.names, name)
        ) AS missing,
        -- the factors of a batch; one that is 1 may be left out
        concat_ws(' × ', c.micro_batch_size, c.replicas, c.gradient_accumulation) AS factors,
        coalesce(c.micro_batch_size, 1) * coalesce(c.replicas, 1)
            * coalesce(c.gradient_accumulation, 1) AS product,
        list_filter(
            string_split(c.precision_flags, '; '),
            lambda setting: NOT list_contains(k.settings, setting)
        ) AS unknown_settings,
        r.result_id IS NOT NULL AS has_result,
        r.batch_size AS printed,
        c.global_batch_from_config = r.batch_size AS agrees
    FROM configured c
    LEFT JOIN filled f USING (document_id, table_name, row_number)
    CROSS JOIN (
        SELECT list(name) AS settings FROM (VALUES {precisions.settings: name}) AS t (name)
    ) k
    LEFT JOIN results r USING (result_id)
),
judged AS (
    SELECT
        *,
        CASE
            WHEN len(missing) > 0 THEN concat_ws(', ', missing) || ' missing'
            WHEN factors <> '' AND product <> global_batch_from_config
                THEN format('{} is not {}', factors, global_batch_from_config)
            WHEN latency_definition IS NOT NULL AND NOT is_defined
                THEN format('unknown definition of latency ''{}''', latency_definition)
            WHEN len(unknown_settings) > 0
                THEN format(
                    'unknown setting of precision ''{}'': add it to precisions.toml, settings',
                    unknown_settings[1]
                )
            WHEN NOT has_row THEN 'there is no such row'
            WHEN has_result AND agrees IS DISTINCT FROM batch_agrees
                THEN format(
                    'batch_agrees is {}, but {} is configured and {} is printed',
                    CASE batch_agrees WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' ELSE 'None' END,
                    coalesce(global_batch_from_config::VARCHAR, 'None'),
                    coalesce(printed::VARCHAR, 'None')
                )
        END AS fault
    FROM described
)
SELECT
    document_id,
    locator AS place,
    concat_ws(' ', result_document, result_table, result_row) || ': ' || fault AS message
FROM judged
WHERE fault IS NOT NULL
ORDER BY document_id, table_name, row_number
