-- scope: record
-- Flag a column whose figures are all whole multiples of one unit, and what that unit is, at its
-- first figure.
-- Tried are cycles of each clock for times, and for rates with a known work (of a mean over tiles,
-- cycles of all tiles), items of the row's batch for throughputs, and shares of up to 200 for
-- percentages. A figure is a multiple if some value that rounds to it is. One that accident makes a
-- multiple in half of all cases says nothing; three others must be left. The chance is that of
-- accident, times all columns and units that are tried, and must be below 10^-6.
WITH products AS (  -- whose work is known, so that their rate is a time
    SELECT
        *,
        regexp_extract(
            shape, '\bn=(\d+) k=(\d+) m=(\d+) tiles=(\d+)', ['n', 'k', 'm', 'tiles']
        ) AS size,
        try_cast(size['tiles'] AS DOUBLE) AS tiles,
        2 * tiles * try_cast(size['n'] AS DOUBLE) * try_cast(size['k'] AS DOUBLE)
            * try_cast(size['m'] AS DOUBLE) / (canonical_value * 1e12) AS seconds
    FROM rules.microbenchmark_figures
    WHERE metric = 'arithmetic throughput'
), figures AS (
    SELECT
        'cycles' AS kind, document_id, 'value' AS column_name, metric || ' of ' || chip AS title,
        statistic, result_id, row_number AS place, seconds AS figure,
        half * seconds / canonical_value AS half,
        if(statistic = 'mean over tiles', tiles, 1) AS grain
    FROM products
    WHERE seconds IS NOT NULL
    UNION ALL
    SELECT
        if(metric = 'time', 'cycles', metric), document_id, 'value', metric || ' of ' || chip,
        statistic, result_id, row_number, canonical_value, half, 1
    FROM rules.microbenchmark_figures
    WHERE metric IN ('time', 'share')
    UNION ALL
    SELECT
        'batch', p.document_id, column_name, 'throughput of ' || p.table_name, NULL, p.result_id,
        p.place, throughput, half_digit(raw_text) * throughput / value, batch_size
    FROM rules.printed_figures
    JOIN rules.published p USING (result_id)
    WHERE column_name = 'throughput' AND batch_size > 1
    UNION ALL
    SELECT
        'cycles', p.document_id, column_name, 'latency_ms of ' || p.table_name, NULL, p.result_id,
        p.place, latency_ms / 1e3, half_digit(raw_text) * latency_ms / 1e3 / value, 1
    FROM rules.printed_figures
    JOIN rules.published p USING (result_id)
    WHERE column_name = 'latency_ms'
), units AS (
    SELECT DISTINCT 'cycles' AS kind, clock_ghz || ' GHz' AS unit, 1 / (clock_ghz * 1e9) AS size
    FROM platforms
    WHERE clock_ghz IS NOT NULL
    UNION ALL
    SELECT 'share', 'counts of ' || whole, 100 / whole FROM range(2, 201) AS wholes (whole)
    UNION ALL
    SELECT 'batch', 'items of the batch', NULL
), trials AS (
    SELECT
        *,
        if(kind = 'batch', grain, size / grain) AS one,
        -- a figure printed with all digits of a double was computed in some steps: four doubles
        4 * pow(2, floor(log2(nullif(figure, 0))) - 52) AS rounding,
        if(half > 0, greatest(half, rounding), NULL) AS margin,
        2 * margin / one AS chance,
        abs(figure - round(figure / one) * one) <= margin * (1 + 1e-9) AS is_multiple
    FROM figures
    JOIN units USING (kind)
), columns_tried AS (
    SELECT
        kind, document_id, column_name, title, statistic, unit, size,
        first(result_id ORDER BY place, result_id) AS result_id,
        max(grain) AS tiles,
        count(*) FILTER (chance < 0.5) AS figures,
        count(*) FILTER (chance < 0.5 AND is_multiple) AS multiples,
        sum(log10(chance)) FILTER (chance < 0.5) AS chance_of_column
    FROM trials
    GROUP BY kind, document_id, column_name, title, statistic, unit, size
    HAVING count(*) FILTER (chance < 0.5) >= 3
), compared AS (
    SELECT
        *,
        count(*) OVER () AS tests,
        chance_of_column + log10(tests) AS exponent,
        coalesce(string_agg(format(', {} at {}', multiples, unit), '') OVER others, '') AS rivals
    FROM columns_tried
    WINDOW others AS (
        PARTITION BY document_id, column_name, title, statistic
        ORDER BY size DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW
    )
), flagged AS (
    SELECT
        result_id, column_name, size,
        format(
            'all {} figures of {} ({}) with digits enough are whole {}; the chance of that by accident'
            || ' is 10^{:.0f}, with {} tests counted',
            figures, title, document_id,
            CASE
                WHEN kind <> 'cycles' THEN unit
                WHEN tiles > 1
                    THEN format('cycles summed over {:.0f} tiles at {}', tiles, unit) || rivals
                ELSE 'cycles at ' || unit || rivals
            END,
            exponent, tests
        ) AS message
    FROM compared
    WHERE multiples = figures AND exponent < -6
)
SELECT
    result_id, column_name, 'info' AS severity,
    string_agg(message, '; ' ORDER BY size DESC) AS message  -- two units may fit
FROM flagged
GROUP BY result_id, column_name
