-- scope: document
-- Flag a model name that hides which network ran, if a public configuration or the document
-- names it.
SELECT
    result_id, 'model_printed' AS column_name, severity,
    format(
        '{} names several networks; here {} ran ({} M parameters): {}',
        model_printed, model, format_figure(round(parameters / 1e6, 1)), source
    ) AS message,
    model AS suggested
FROM rules.published
JOIN rules.identities USING (model_printed, platform, framework)
