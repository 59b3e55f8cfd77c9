-- Most rows have the figures of one document, three or more, whatever machine and model are called:
-- 4 digits of each at the same batch size, or 5.
WITH documents_in_common AS (
    SELECT
        r.publisher, r.document_id, (SELECT count(*) FROM mine) AS all_rows,
        least(count(DISTINCT run), count(DISTINCT values)) AS rows
    FROM common
    JOIN mine m USING (run)
    JOIN candidates r ON r.result_id = common.result_id
    WHERE digits >= if(r.task = m.task AND r.batch_size IS NOT DISTINCT FROM m.batch_size, 4, 5)
    GROUP BY r.publisher, r.document_id
)
SELECT
    'copied' AS reason, 'results.csv' AS place,
    format(
        '{} of {} rows have figures that the record has from {} ({}), under other names; hand in'
        ' figures of your own', rows, all_rows, publisher, document_id
    ) AS message
FROM documents_in_common
WHERE rows >= greatest(3, all_rows / 2)
ORDER BY rows DESC, document_id
LIMIT 1
