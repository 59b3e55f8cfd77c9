-- Machines of the vocabulary of which an official description names another chip, or another number of
-- them.
SELECT
    'schema/vocabulary/platforms.toml' AS document_id,
    format('platform ''{}''', platform) AS place,
    format(
        '{} is {}, but the MLPerf v{} description {} has {}: correct one of the two',
        name, coalesce(known, 'None'), round, system_path, described
    ) AS message
FROM descriptions d
JOIN known_platform k USING (platform),
(VALUES
    ('chip', format('''{}''', k.chip), format('''{}''', d.chip)),
    ('chip_count', k.chip_count::VARCHAR, d.chip_count::VARCHAR)
) AS compared(name, known, described)
WHERE described <> coalesce(known, '')
ORDER BY platform, number, name
