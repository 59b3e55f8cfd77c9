-- scope: document
-- Flag a printed dataset that is not what the public command feeds. Only exact and likely matches count.
SELECT
    result_id, 'dataset_printed' AS column_name, 'info' AS severity,
    format('prints {}; {} feeds: {}', dataset_printed, command, data_fed) AS message,
    data_fed AS suggested
FROM rules.configured
WHERE dataset_printed IS NOT NULL AND data_fed IS NOT NULL AND NOT dataset_agrees
