-- Throughput over efficiency is the power that the paper measured at that batch. The sentence may speak of the power that
-- the card draws, or of its rating, which the highest power bounds from below: both readings are shown.
WITH powers AS (
    SELECT result_id, batch_size, throughput, efficiency, throughput / efficiency AS power
    FROM results
    WHERE document_id = 'qwant-c2-report-2020-02-28' AND table_name = 'qwant_c2'
)
SELECT
    power AS value,
    'read as the power drawn; the paper''s own tables, batch ' || batch_size AS baseline,
    printf('%g / %g = %.1f W', throughput, efficiency, power) AS arithmetic,
    ['results:' || result_id] AS inputs,
    NULL::VARCHAR AS relation, 'the power drawn' AS reading
FROM powers
UNION ALL
SELECT
    max(power), 'read as a rating; the paper''s own tables, the highest of ' || count(*) || ' batches',
    printf('%.1f W at batch %d', max(power), arg_max(batch_size, power)),
    list('results:' || result_id ORDER BY batch_size), 'at-most', 'a rating'
FROM powers
HAVING count(*) > 0
