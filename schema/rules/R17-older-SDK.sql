-- scope: document
-- Flag an SDK that is older than the most common one of its table (the newest of several equally common ones). The vendor
-- called the releases before 2.5 `Pre-SDK2.5`, so it counts as older than 2.5 and newer than any version below. A version
-- without a number is skipped, since its age is unknown.
WITH parsed AS (
    SELECT
        result_id, document_id, table_name, sdk_version,
        regexp_extract(
            sdk_version, '(pre-?)?(?:sdk)?\s*(\d+(?:\.\d+)*)', ['before', 'numbers'], 'i'
        ) AS parts
    FROM rules.published
    WHERE regexp_matches(sdk_version, '\d')
), numbered AS (
    SELECT
        *,
        CAST(string_split(p.parts.numbers, '.') AS DOUBLE[]) AS numbers,
        if(p.parts.before = '', numbers, numbers[:-2] || [numbers[-1] - 0.5]) AS exact_numbers
    FROM parsed p
), versions AS (  -- of four numbers, so that 2.4 equals 2.4.0
    SELECT *, list_resize(exact_numbers, 4, 0.0) AS version FROM numbered
), common AS (
    SELECT document_id, table_name, version AS common_version, min(sdk_version) AS common_sdk
    FROM versions
    GROUP BY document_id, table_name, version
    QUALIFY row_number() OVER (
        PARTITION BY document_id, table_name ORDER BY count(*) DESC, version DESC
    ) = 1
)
SELECT
    result_id, 'sdk_version' AS column_name, 'info' AS severity,
    format('SDK {}, older than {}, the most common one of its table', sdk_version, common_sdk)
        AS message
FROM versions
JOIN common USING (document_id, table_name)
WHERE version < common_version
