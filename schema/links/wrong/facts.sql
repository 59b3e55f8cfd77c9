-- Facts without a value or a text, with a number without its unit, or with the id of another fact.
WITH numbered AS (
    SELECT *, first_value(document_id) OVER ids AS first_document, row_number() OVER ids AS number
    FROM read.facts
    WINDOW ids AS (PARTITION BY fact_id ORDER BY document_id, table_name, row_number)
),
judged AS (
    SELECT
        *,
        CASE
            WHEN (value IS NULL) = (text_value IS NULL)
                THEN 'a fact needs either a value or a text_value'
            WHEN (value IS NULL) <> (unit IS NULL)
                THEN 'a value needs its unit, and a text has none'
            WHEN number > 1
                THEN format('{} is also the id of a fact in {}', fact_id, first_document)
        END AS message
    FROM numbered
)
SELECT document_id, locator AS place, message
FROM judged
WHERE message IS NOT NULL
ORDER BY document_id, table_name, row_number
