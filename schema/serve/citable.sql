-- What an answer, a citation and a table may name: results, and microbenchmarks in the columns of
-- a result and with their own.
CREATE OR REPLACE TEMP VIEW citable AS
WITH flagged AS (
    SELECT result_id AS microbenchmark_id, count(*) AS errors
    FROM flags
    WHERE severity = 'error'
    GROUP BY result_id
)
SELECT
    r.*,
    name_unusable(r.usable, r.same_as, r.errors, r.origin, r.relationship, d.figures_are, r.printed_until)
        AS unusable
FROM results r
LEFT JOIN documents d USING (document_id)
UNION ALL BY NAME
SELECT
    m.*, microbenchmark_id AS result_id, 'published' AS origin, operation AS model,
    operation AS model_printed, concat_ws(', ', metric, statistic, shape, conditions) AS variant,
    'microbenchmark' AS task, chip AS platform, coalesce(errors, 0) AS errors,
    errors IS NULL AS usable, if(errors > 0, 'error', NULL) AS unusable
FROM microbenchmarks m
LEFT JOIN flagged USING (microbenchmark_id)
