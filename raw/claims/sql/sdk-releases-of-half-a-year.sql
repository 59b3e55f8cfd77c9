-- Release tags of the SDK in the months that the document names, December 2020 to June 2021: all of them, or those after the
-- first, from which the document's own gains are counted.
WITH tags AS (
    SELECT *, row_number() OVER (ORDER BY text_value) AS position
    FROM detail.facts
    WHERE property = 'release tag' AND text_value::DATE BETWEEN DATE '2020-12-01' AND DATE '2021-06-30'
)
SELECT
    count(*)::DOUBLE AS value,
    'tags of poplibs from December 2020 to June 2021, ' || r.reading AS baseline,
    string_agg(subject || ' of ' || text_value, ', ' ORDER BY text_value) AS arithmetic,
    list('facts:' || fact_id ORDER BY text_value) AS inputs,
    r.reading
FROM tags
JOIN (VALUES ('releases in these months', 1), ('updates to the first of them', 2)) AS r (reading, since)
    ON tags.position >= r.since
GROUP BY r.reading
ORDER BY value DESC
