-- scope: record
-- Flag a throughput that differs more than 1.2 times from the same row of another document.
WITH documents AS (
    SELECT
        task, model_printed, variant, platform, framework, batch_size, precision_printed,
        min(throughput) AS least,
        max(throughput) AS most
    FROM rules.published
    WHERE throughput > 0 AND batch_size IS NOT NULL
    GROUP BY
        document_id, task, model_printed, variant, platform, framework, batch_size,
        precision_printed
), ranges AS (  -- a document that agrees with one of two figures differs from none
    SELECT
        task, model_printed, variant, platform, framework, batch_size, precision_printed,
        min(most) AS low,
        max(least) AS high
    FROM documents
    GROUP BY task, model_printed, variant, platform, framework, batch_size, precision_printed
    HAVING high > 1.2 * low
)
SELECT
    p.result_id, 'throughput' AS column_name, 'info' AS severity,
    format(
        'documents print {} to {} items/s, {} times, for {} on {} at batch {} and the same'
        || ' precision; compare their SDKs and conditions',
        format_figure(low), format_figure(high), format_rounded(high / low),
        p.model_printed, p.platform, p.batch_size
    ) AS message
FROM ranges r
JOIN rules.published p ON p.task = r.task AND p.model_printed = r.model_printed
    AND p.variant IS NOT DISTINCT FROM r.variant
    AND p.platform IS NOT DISTINCT FROM r.platform
    AND p.framework IS NOT DISTINCT FROM r.framework
    AND p.batch_size = r.batch_size
    AND p.precision_printed IS NOT DISTINCT FROM r.precision_printed
WHERE p.throughput > 0
