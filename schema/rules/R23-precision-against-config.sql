-- scope: document
-- Flag a printed precision that the configuration's settings do not fit. Only exact and likely matches count, and a likely
-- one is only information. The suggestion is the one precision that fits all settings. Settings that leave the precision
-- open, such as 8-bit input, say nothing.
WITH settings AS (
    SELECT DISTINCT precision_flags, unnest(string_split(precision_flags, '; ')) AS setting
    FROM rules.configured
), deciding AS (
    SELECT precision_flags, setting, precision_printed
    FROM settings
    JOIN rules.precision_settings USING (setting)
), fitting AS (
    SELECT precision_flags, precision_printed
    FROM deciding d
    GROUP BY precision_flags, precision_printed
    HAVING count(*) = (
        SELECT count(DISTINCT setting) FROM deciding o WHERE o.precision_flags = d.precision_flags
    )
), options AS (
    SELECT precision_flags, list(precision_printed) AS precisions FROM fitting GROUP BY precision_flags
)
SELECT
    result_id, 'precision_printed' AS column_name,
    if(match_confidence = 'exact', 'warn', 'info') AS severity,
    format(
        'prints {}; {} sets: {}{}', precision_printed, command, precision_flags,
        coalesce('; ' || note, '')
    ) AS message,
    if(match_confidence = 'exact' AND len(precisions) = 1, precisions[1], NULL) AS suggested
FROM rules.configured
JOIN options USING (precision_flags)
WHERE activation_bits IS NOT NULL AND NOT list_contains(precisions, precision_printed)
