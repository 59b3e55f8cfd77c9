-- Conditions that one row alone has: within its table, or within the record, where `printed_table` is null. A value is
-- compared with those of the rows that share what `shared` names. Every other value, of `others`, is that of two rows or
-- more, of four or more in all, and in the record in two documents or more. What is compared is what rows agree on in the
-- record: each line of the lists but the last has no such row there.
WITH in_tables AS (
    SELECT
        place, document_id, concat_ws(' ', document_id, table_name) AS printed_table,
        unnest([
            {column_name: 'task', value: task, shared: ''},
            {column_name: 'platform', value: ipu, shared: ''},
            {column_name: 'power_scope', value: power_scope, shared: ''},
            {column_name: 'latency_basis', value: latency_basis, shared: framework},
            {column_name: 'item', value: item, shared: model_printed},
            {column_name: 'item', value: item, shared: dataset_printed},
            {column_name: 'dataset_printed', value: dataset_printed, shared: work},
            {column_name: 'dataset_printed', value: dataset_printed, shared: words},
            {column_name: 'framework', value: framework, shared: work},
            {column_name: 'framework', value: framework, shared: data_and_maker},
            {column_name: 'precision_printed', value: precision_printed, shared: model_printed},
            {column_name: 'variant', value: words, shared: model_printed},
            {column_name: 'variant', value: words, shared: dataset_printed},
            {column_name: 'chip', value: chip, shared: platform},
            {column_name: 'chip_count', value: chip_count::VARCHAR, shared: platform}
        ], recursive := TRUE)
    FROM rules.conditions
), in_record AS (
    SELECT
        place, document_id, NULL AS printed_table,
        unnest([
            {column_name: 'task', value: task, shared: dataset_printed},
            {column_name: 'task', value: task, shared: framework_and_maker || ' and ' || item},
            {column_name: 'item', value: item, shared: model_printed},
            {column_name: 'item', value: item, shared: dataset_printed},
            {column_name: 'framework', value: framework, shared: model_printed || ' and ' || maker},
            {column_name: 'framework', value: framework, shared: data_and_maker},
            {column_name: 'precision_printed', value: precision_printed, shared: framework_and_maker},
            {column_name: 'variant', value: sequence_length, shared: words},
            {column_name: 'chip', value: chip, shared: platform},
            {column_name: 'chip_count', value: chip_count::VARCHAR, shared: platform}
        ], recursive := TRUE)
    FROM rules.conditions
), in_documents AS (
    SELECT
        printed_table, column_name, shared, value, document_id,
        min(place) AS place, count(*) AS rows
    FROM (FROM in_tables UNION ALL FROM in_record)
    WHERE value IS NOT NULL AND shared IS NOT NULL
    GROUP BY ALL
), counts AS (
    SELECT
        *, sum(rows) OVER (PARTITION BY printed_table, column_name, shared, value) AS all_rows
    FROM in_documents
), with_one_alone AS (  -- first without lists of their values, which have to fit into memory at once
    SELECT
        printed_table, column_name, shared,
        min(place) FILTER (all_rows = 1) AS place,
        sum(rows) - 1 AS other_rows
    FROM counts
    GROUP BY printed_table, column_name, shared
    HAVING count_if(all_rows = 1) = 1 AND other_rows >= 4
), their_values AS (
    SELECT
        l.place, l.printed_table, l.column_name, l.shared, l.other_rows, c.value,
        sum(c.rows) AS rows, list(c.document_id) AS documents
    FROM with_one_alone l
    JOIN counts c ON c.column_name = l.column_name AND c.shared = l.shared
        AND c.printed_table IS NOT DISTINCT FROM l.printed_table
    GROUP BY ALL
), groups AS (
    SELECT
        place, printed_table, column_name, shared, other_rows,
        any_value(value) FILTER (rows = 1) AS value,
        string_agg(value, ', ' ORDER BY rows DESC, value) FILTER (rows > 1) AS others,
        len(list_distinct(flatten(list(documents) FILTER (rows > 1)))) AS other_documents
    FROM their_values
    GROUP BY ALL
)
SELECT p.result_id, g.* EXCLUDE (place)
FROM groups g
JOIN rules.published p USING (place)
WHERE printed_table IS NOT NULL OR other_documents >= 2
