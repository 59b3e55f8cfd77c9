-- The cells of other documents that fill a column of a result: they come after its own ones.
WITH own AS (
    SELECT result_id, max(cell_number) AS last_number
    FROM cells
    WHERE result_id IN (SELECT id FROM added)
    GROUP BY result_id
)
SELECT
    a.id AS result_id,
    o.last_number
    + row_number() OVER (PARTITION BY a.id ORDER BY a.column_name DESC)  -- the micro-batch first
        AS cell_number,
    a.column_name,
    c.header,
    c.raw_text,
    CASE WHEN a.column_name = 'micro_batch_size' THEN a.value::DOUBLE END AS value,
    CASE WHEN a.column_name = 'micro_batch_size' THEN 'item' END AS unit,
    CASE WHEN a.column_name = 'micro_batch_size' THEN 1.0::DOUBLE END AS factor,
    a.document_id,
    c.locator,
    NULL AS source_locator
FROM added a
JOIN read.cells c USING (document_id, table_name, row_number, field)
JOIN own o ON o.result_id = a.id
