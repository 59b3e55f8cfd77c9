-- What a row of the hand-in has in common with a row of the record: figures of which all digits
-- that the hand-in states are equal, two or more, whatever the unit is. A throughput may also be
-- that of one chip of the record's row.
WITH known AS (
    FROM (UNPIVOT candidates ON {figures} INTO NAME name VALUE value)
    SELECT result_id, name, value, value AS theirs
    WHERE value <> 0
    UNION ALL
    SELECT result_id, 'throughput', throughput / chip_count, throughput
    FROM candidates
    WHERE chip_count > 1
),
sizes AS (  -- more digits than 12 are not looked up
    SELECT DISTINCT least(digits, 12) AS size
    FROM stated
    WHERE digits >= 2
),
rounded AS (
    SELECT DISTINCT result_id, name, theirs, size, first_digits(value, size) AS text
    FROM known
    JOIN sizes ON size <= count_digits(value)
),
shared AS (
    SELECT
        s.*, r.result_id, r.theirs,
        name IN ('throughput', 'latency_ms')
            AND abs(throughput * latency_ms / 1000 / batch_size - 1) <= 0.02 AS is_of_law
    FROM stated s
    JOIN mine USING (run)
    JOIN rounded r USING (name)
    WHERE r.size = least(s.digits, 12) AND r.text = first_digits(s.value, r.size)
        AND position IS NOT NULL
)
SELECT
    run, result_id, bool_and(value = theirs) AS is_exact, list(value ORDER BY position) AS values,
    string_agg(
        format('{} {:.12g}', name, value)
            || if(value = theirs, '', format(' (there {:.12g})', theirs)),
        ', ' ORDER BY position
    ) AS figures,
    -- of two of which one was computed from the other, only the digits of one count
    sum(digits) - if(count_if(is_of_law) = 2, min(digits) FILTER (is_of_law), 0) AS digits
FROM shared
GROUP BY run, result_id
