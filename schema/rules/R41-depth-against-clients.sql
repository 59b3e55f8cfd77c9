-- scope: document
-- Flag other batches in flight than clients wait for, as the conditions say, or than the rest of
-- the table has.
-- A client with one batch keeps one in flight. Without such words a table counts if 80 % of five
-- rows or more are within 5 % of its median, of the items in flight where a latency is that of an
-- item. A row may be off by 10 %.
WITH depths AS (
    SELECT
        *,
        if(latency_basis = 'per-item', in_flight * batch_size, NULL) AS items_in_flight,
        median(in_flight) OVER printed_table AS median_batches,
        median(items_in_flight) OVER printed_table AS median_items,
        regexp_extract(
            conditions, '\b(\d+|one) (?:client )?threads? with one (batch|sequence)',
            ['clients', 'item']
        ) AS words
    FROM rules.published
    WHERE in_flight > 0
    WINDOW printed_table AS (PARTITION BY document_id, table_name)
), nearness AS (
    SELECT
        *,
        if(abs(in_flight / median_batches - 1) <= 0.05, 1, 0) AS is_near,
        if(abs(items_in_flight / median_items - 1) <= 0.05, 1, 0) AS item_is_near
    FROM depths
), tables AS (
    SELECT
        document_id, table_name,
        if(count(*) >= 5 AND avg(is_near) >= 0.8, any_value(median_batches), NULL) AS batches,
        if(
            count(items_in_flight) >= 5
                AND avg(item_is_near) FILTER (items_in_flight IS NOT NULL) >= 0.8,
            any_value(median_items), NULL
        ) AS items
    FROM nearness
    GROUP BY document_id, table_name
), expectations AS (
    SELECT
        *,
        if(words.clients = 'one', 1, try_cast(words.clients AS DOUBLE))
            / if(words.item = 'sequence', batch_size, 1) AS clients,
        coalesce(clients, batches, if(latency_basis = 'per-item', items / batch_size, NULL))
            AS expected
    FROM depths
    JOIN tables USING (document_id, table_name)
)
SELECT
    result_id, 'latency_ms' AS column_name, 'warn' AS severity,
    format(
        '{} batches in flight: throughput {} × latency {} ms / batch {}; {} {};'
        || ' read the latency, the batch and the clients again',
        format_rounded(in_flight), format_figure(throughput), format_figure(latency_ms), batch_size,
        if(clients IS NULL, 'the other rows of its table have', 'its clients wait for'),
        format_rounded(expected)
    ) AS message
FROM expectations
WHERE abs(in_flight / expected - 1) > 0.1
