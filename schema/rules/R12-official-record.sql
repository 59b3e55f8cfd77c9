-- scope: record
-- Flag a printed time that is not the official score, computed from the logs and rounded to the printed digits. The row's
-- MLPerf id names the entry. Up to 0.01 minutes off is information, up to 0.1 a warning. An id without an official entry is
-- a finding of its own, and so is a machine with another number of chips than the entry's.
WITH named AS (
    FROM rules.published WHERE mlperf_id IS NOT NULL
), scores AS (
    SELECT e.mlperf_id, own.model_printed, e.minutes, e.path
    FROM mlperf_entries e
    JOIN results own ON own.result_id = e.result_id
    WHERE e.minutes IS NOT NULL
), machines AS (
    SELECT mlperf_id, min(chip_count) AS official_count
    FROM mlperf_entries
    GROUP BY mlperf_id
), times AS (
    SELECT
        n.result_id, n.mlperf_id, n.model_printed, c.value, c.unit, c.factor, s.path,
        s.minutes * 60 / c.factor AS official,
        CAST(len(split_part(c.raw_text, '.', 2)) AS INTEGER) AS decimals,
        CAST(format('{:.{}f}', official, decimals) AS DOUBLE) AS rounded,
        abs(c.value - official) * c.factor / 60 AS minutes_off
    FROM named n
    JOIN cells c ON c.result_id = n.result_id AND c.column_name = 'time_to_train_s'
    LEFT JOIN scores s USING (mlperf_id, model_printed)
)
SELECT
    result_id, 'time_to_train_s' AS column_name,
    CASE WHEN minutes_off <= 0.01 THEN 'info' WHEN minutes_off <= 0.1 THEN 'warn' ELSE 'error' END
        AS severity,
    format(
        'prints {} {}; the logs of {} give {}, {} to the printed digits', format_figure(value), unit,
        path, format_figure(official), format_figure(rounded)
    ) AS message,
    format_figure(rounded * factor) AS suggested
FROM times
WHERE rounded <> value
UNION ALL
SELECT
    result_id, 'mlperf_id', 'warn',
    format('no official entry of {} bears the id {}', model_printed, mlperf_id), NULL
FROM times
WHERE path IS NULL
UNION ALL
SELECT
    result_id, 'chip_count', 'error',
    format(
        'prints a machine of {} chips; the official entry {} has {}',
        chip_count, mlperf_id, official_count
    ),
    NULL
FROM named
JOIN machines USING (mlperf_id)
WHERE chip_count <> official_count
