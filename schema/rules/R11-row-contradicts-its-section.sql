-- scope: document
-- Flag a platform that is not the one that the section around the table is about.
SELECT
    result_id, 'platform' AS column_name, 'warn' AS severity,
    format('{}, while the section around the table speaks of {}', platform, section_platform)
        AS message
FROM rules.published
JOIN detail.source_tables USING (document_id, table_name)
WHERE platform <> section_platform
