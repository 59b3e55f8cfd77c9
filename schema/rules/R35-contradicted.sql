-- scope: record
-- Flag each figure that an entry of `contradictions` puts in doubt (table `contradicted`), with what it says: error where it
-- cannot be what its column says, warn where it is one of two figures that cannot both be. What R29 and R34 flag is left to
-- them. An entry of which no figure is in doubt is information, of which a reader must know: flagged once, at its first one.
WITH stated AS (
    SELECT contradiction_id, min(place) AS place, count(*) AS figures
    FROM (SELECT *, unnest(ids) AS contradiction_id FROM rules.contradicted_figures)
    GROUP BY contradiction_id
    HAVING max(level) = 1
), statements AS (
    SELECT
        place,
        string_agg(
            format('{}: {} (figures that it is about: {})', contradiction_id, what, figures),
            '; ' ORDER BY contradiction_id
        ) AS message
    FROM stated
    JOIN contradictions USING (contradiction_id)
    GROUP BY place
)
SELECT result_id, column_name, if(level = 3, 'error', 'warn') AS severity, entries AS message
FROM rules.contradicted_figures
WHERE level > 1 AND (result_id, column_name) NOT IN (
        SELECT (result_id, column_name) FROM rules.power_above_scope
        UNION ALL
        SELECT (result_id, column_name) FROM rules.peaks_against_series
    )
UNION ALL
SELECT result_id, column_name, 'info', message
FROM statements
JOIN rules.contradicted_figures USING (place)
