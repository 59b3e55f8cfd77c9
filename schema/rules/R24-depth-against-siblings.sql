-- scope: record
-- Flag batches in flight that differ by more than 1.5 times from rows of the same configuration. Siblings have the same
-- command, variant, machine and way of timing, and differ in the batch. How many batches are in flight is a setting of the
-- command, so a row unlike the median of 3 or more others did not run with the printed batch or with that setting. Only
-- exact and likely matches count, and latencies of an item are excluded.
SELECT
    result_id, 'batch_size' AS column_name, 'warn' AS severity,
    format(
        '{} batches in flight at batch {}, {} in the median of {} other rows of {}; '
        || 'a batch of about {} would give as many',
        format_rounded(in_flight), batch_size, format_rounded(usual), other_rows, command,
        format_rounded(batch_size * in_flight / usual)
    ) AS message
FROM rules.unlike_depths
