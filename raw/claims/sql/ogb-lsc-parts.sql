-- Leaderboards of the contest.
SELECT
    count(DISTINCT part)::DOUBLE AS value,
    'leaderboards of the contest' AS baseline,
    string_agg(DISTINCT part, ', ' ORDER BY part) AS arithmetic,
    list('facts:' || fact_id ORDER BY fact_id) AS inputs
FROM (
    SELECT fact_id, split_part(subject, ', ', 2) AS part
    FROM detail.facts
    WHERE document_id = 'ogb-lsc-2022-results' AND property = 'rank'
)
HAVING count(*) > 0
