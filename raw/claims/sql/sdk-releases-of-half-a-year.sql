-- Release tags of the SDK in the months that the document names, December 2020 to June 2021.
SELECT
    count(*)::DOUBLE AS value,
    'tags of poplibs from December 2020 to June 2021' AS baseline,
    string_agg(subject || ' of ' || text_value, ', ' ORDER BY text_value) AS arithmetic,
    list('facts:' || fact_id ORDER BY text_value) AS inputs
FROM detail.facts
WHERE property = 'release tag' AND text_value::DATE BETWEEN DATE '2020-12-01' AND DATE '2021-06-30'
HAVING count(*) > 0
