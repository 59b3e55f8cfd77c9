-- scope: record
-- Flag a throughput that differs more than 1.2 times from the same row of another document.
WITH documents AS (
    SELECT
        list(result_id) AS ids, min(throughput) AS least, max(throughput) AS most,
        task, model_printed, variant, platform, framework, batch_size, precision_printed
    FROM rules.published
    WHERE throughput > 0 AND batch_size IS NOT NULL
    GROUP BY
        document_id, task, model_printed, variant, platform, framework, batch_size,
        precision_printed
), ranges AS (  -- a document that agrees with one of two figures differs from none
    SELECT
        flatten(list(ids)) AS ids, min(most) AS low, max(least) AS high,
        model_printed, platform, batch_size
    FROM documents
    GROUP BY task, model_printed, variant, platform, framework, batch_size, precision_printed
)
SELECT
    unnest(ids) AS result_id, 'throughput' AS column_name, 'info' AS severity,
    format(
        'documents print {} to {} items/s, {} times, for {} on {} at batch {} and the same'
        || ' precision; compare their SDKs and conditions',
        format_figure(low), format_figure(high), format_rounded(high / low),
        model_printed, platform, batch_size
    ) AS message
FROM ranges
WHERE high > 1.2 * low
