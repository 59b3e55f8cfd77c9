-- scope: document
-- Flag the two rows of a table that print one set-up, where every other row prints one of its own: the machine, the framework
-- or the variant of one of them may be that of another row. A set-up is all that says what was run but batch and SDK. Six
-- rows or more are compared. Where the throughput per chip of one is unlike that of its network in the table, by 1.5 times
-- and twice as much as that of the other, it is flagged alone. What R52 flags is left to it.
WITH rated AS (
    SELECT
        result_id, document_id, table_name, row_number, place,
        ln(throughput) - ln(chip_count) AS figure,
        abs(figure - median(figure) OVER same_network) AS deviation,
        result_id IN (SELECT result_id FROM rules.against_config) AS is_against_config,
        min(place) OVER same_set_up AS set_up
    FROM rules.published
    WINDOW
        same_network AS (PARTITION BY document_id, table_name, task, model_printed, variant),
        same_set_up AS (
            PARTITION BY
                document_id, table_name, task, model_printed, variant, dataset_printed, platform,
                chip, chip_count, framework, precision_printed, item, conditions, input_tokens,
                output_tokens
        )
), counted AS (
    SELECT
        result_id, deviation,
        count(*) OVER same_set_up AS rows,
        min(row_number) OVER same_set_up AS first_row,
        max(row_number) OVER same_set_up AS last_row,
        bool_or(is_against_config) OVER same_set_up AS is_against_config,
        max(deviation) OVER same_set_up AS largest,
        min(deviation) OVER same_set_up AS smallest,
        count(*) OVER printed_table AS table_rows,
        count_if(place = set_up) OVER printed_table AS table_set_ups
    FROM rated
    WINDOW
        same_set_up AS (PARTITION BY set_up),
        printed_table AS (PARTITION BY document_id, table_name)
), pairs AS (
    SELECT *, coalesce(largest > greatest(ln(1.5), 2 * smallest), FALSE) AS has_odd_one
    FROM counted
    WHERE rows = 2 AND table_rows >= 6 AND table_set_ups = table_rows - 1 AND NOT is_against_config
)
SELECT
    result_id, 'platform' AS column_name, 'warn' AS severity,
    format(
        'rows {} and {} print one set-up, and each of the {} others of the table one of its own:'
        || ' read their machine, framework, dataset and variant again',
        first_row, last_row, table_rows - 2
    ) AS message
FROM pairs
WHERE NOT has_odd_one OR deviation = largest
