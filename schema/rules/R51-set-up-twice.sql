-- scope: document
-- Flag the two rows of a table that print one set-up, where every other row prints one of its own: the machine, the framework
-- or the variant of one of them may be that of another row. A set-up is all that says what was run but batch and SDK. Six
-- rows or more are compared. Where the throughput per chip of one is unlike that of its network in the table, by 1.5 times
-- and twice as much as that of the other, it is flagged alone. What R52 flags is left to it.
WITH rated AS (
    SELECT
        *,
        ln(throughput) - ln(chip_count) AS figure,
        abs(figure - median(figure) OVER same_network) AS deviation,
        result_id IN (SELECT result_id FROM rules.against_config) AS is_against_config
    FROM rules.published
    WINDOW same_network AS (PARTITION BY document_id, table_name, task, model_printed, variant)
), set_ups AS (
    SELECT
        list(struct_pack(result_id, row_number, deviation) ORDER BY place) AS members,
        bool_or(is_against_config) AS is_against_config,
        max(deviation) AS largest, min(deviation) AS smallest,
        sum(count(*)) OVER printed_table AS table_rows,
        count(*) OVER printed_table AS table_set_ups
    FROM rated
    GROUP BY
        document_id, table_name, task, model_printed, variant, dataset_printed, platform, chip,
        chip_count, framework, precision_printed, item, conditions, input_tokens, output_tokens
    WINDOW printed_table AS (PARTITION BY document_id, table_name)
), pairs AS (
    SELECT
        *, unnest(members, recursive := TRUE),
        coalesce(largest > greatest(ln(1.5), 2 * smallest), FALSE) AS has_odd_one
    FROM set_ups
    WHERE len(members) = 2 AND table_rows >= 6 AND table_set_ups = table_rows - 1
        AND NOT is_against_config
)
SELECT
    result_id, 'platform' AS column_name, 'warn' AS severity,
    format(
        'rows {} and {} print one set-up, and each of the {} others of the table one of its own:'
        || ' read their machine, framework, dataset and variant again',
        members[1].row_number, members[2].row_number, table_rows - 2
    ) AS message
FROM pairs
WHERE NOT has_odd_one OR deviation = largest
