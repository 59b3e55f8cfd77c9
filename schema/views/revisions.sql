-- A page is read row by row in the order of its versions. What a row is about are its cells but for figures, dates and
-- versions of software: a condition that changed begins another series.
WITH histories AS (
    SELECT DISTINCT document_id
    FROM cells
    WHERE column_name = 'printed_until'
),
figure_columns AS (
    SELECT 'throughput' AS column_name
    UNION
    SELECT metric FROM figures
),
texts AS (
    SELECT
        result_id, header, trim(raw_text) AS text,
        column_name IN ('sdk_version', 'framework') OR header ILIKE '%version%' AS is_software,
        column_name = 'framework' AS is_framework
    FROM cells
    WHERE document_id IN (FROM histories) AND trim(raw_text) <> ''
        AND column_name NOT IN ('published_on', 'printed_until', 'place', 'not_read')
        AND column_name NOT IN (FROM figure_columns)
),
described AS (
    SELECT
        result_id,
        string_agg(
            header || ' = ' || CASE WHEN is_framework THEN regexp_replace(text, ' [0-9.]+$', '') ELSE text END, '; '
            ORDER BY header
        ) FILTER (is_framework OR NOT is_software) AS series,
        string_agg(header || ' = ' || text, '; ' ORDER BY header) FILTER (is_software) AS software
    FROM texts
    GROUP BY result_id
),
printed AS (
    SELECT
        r.*, coalesce(r.printed_until, DATE '9999-12-31') AS until, d.software,
        concat_ws('; ', d.series, 'item = ' || r.item) AS series
    FROM results r
    JOIN described d USING (result_id)
),
ambiguous AS (  -- of two rows of one version nothing tells which of the next follows which
    SELECT DISTINCT a.document_id, a.series
    FROM printed a
    JOIN printed b USING (document_id, series)
    WHERE a.row_number < b.row_number AND a.published_on < b.until AND b.published_on < a.until
),
points AS (
    SELECT
        p.*, c.column_name, c.value,
        lag(c.value) OVER versions AS before,
        lag(p.published_on) OVER versions AS before_published_on,
        lag(p.printed_until) OVER versions AS before_printed_until,
        lag(p.sdk_version) OVER versions AS before_sdk_version,
        lag(p.software) OVER versions AS before_software,
        lag(p.result_id) OVER versions AS before_result_id
    FROM (FROM printed ANTI JOIN ambiguous USING (document_id, series)) p
    JOIN cells c ON c.result_id = p.result_id
    WHERE c.column_name IN (FROM figure_columns) AND c.value IS NOT NULL
    -- A figure follows one in its unit, and a quality one of its metric, which is its unit.
    WINDOW versions AS (
        PARTITION BY
            p.document_id, p.series, c.column_name, c.factor,
            -- if(…) is newer than the oldest DuckDB that we support.
            CASE WHEN c.column_name = 'quality_value' THEN c.unit END
        ORDER BY p.row_number
    )
)
SELECT
    publisher, document_id, task, model, model_printed, platform, framework, precision, batch_size, input_tokens,
    output_tokens, conditions, series, column_name, item, before, value AS after, value / nullif(before, 0) AS ratio,
    before_published_on, before_printed_until, published_on, before_sdk_version, sdk_version,
    before_software = software AS same_software,
    CASE
        WHEN before_sdk_version IS NOT NULL AND sdk_version IS NOT NULL
            THEN before_sdk_version = sdk_version AND before_software = software
    END AS silent,
    before_result_id, result_id
FROM points
WHERE value <> before
