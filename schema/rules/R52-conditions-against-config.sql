-- scope: document
-- Flag a condition that the public configuration contradicts: the SDK by its release, the framework by its folder, and the
-- task, the number of chips and the sequence length by its name. Only exact matches count.
SELECT
    result_id, column_name, 'warn' AS severity,
    format('prints {}, where {} is of {}', printed, command, configured) AS message
FROM rules.against_config
