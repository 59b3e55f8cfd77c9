-- The numbers of the hand-in, one a row, with their significant digits. `position` is that of a
-- figure, null for other numbers.
SELECT
    run, row_number, name, value, count_digits(value) AS digits,
    list_position(string_split('{figures}', ', '), name) AS position
FROM (
    UNPIVOT (
        SELECT * REPLACE (
            batch_size::DOUBLE AS batch_size, micro_batch_size::DOUBLE AS micro_batch_size
        )
        FROM mine
    )
    ON {figures}, latency_p90_ms, latency_p99_ms, micro_batch_size, batch_size
    INTO NAME name VALUE value
)
WHERE value <> 0
