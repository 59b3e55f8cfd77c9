-- scope: document
-- Flag a printed figure that has lost a trailing zero or its thousands mark, judged by the rest of
-- its column.
-- It has fewer decimals than the column's most common number (the smaller of two equally common
-- ones), or is 1,000 or more without a mark in a column that prints one elsewhere.
WITH numbers AS (
    SELECT place, column_name, arg_min(raw_text, cell_number) AS raw_text
    FROM cells
    JOIN rules.published USING (result_id, document_id)
    WHERE header_printed AND value IS NOT NULL
    GROUP BY place, column_name
), figures AS (
    SELECT
        result_id, document_id, table_name, column_name, raw_text,
        split_part(raw_text, '.', 1) AS whole,
        split_part(raw_text, '.', 2) AS decimals,
        length(decimals) AS places
    FROM numbers
    JOIN rules.published USING (place)
    WHERE regexp_full_match(raw_text, '(\d{1,3}(,\d{3})+|\d+)(\.\d+)?')
), usual AS (
    SELECT document_id, table_name, column_name, places AS usual
    FROM figures
    GROUP BY document_id, table_name, column_name, places
    QUALIFY row_number() OVER (
            PARTITION BY document_id, table_name, column_name ORDER BY count(*) DESC, places
        ) = 1
), judged AS (
    SELECT
        *,
        places < usual AS short,
        length(whole) > 3 AND NOT contains(whole, ',')
            AND bool_or(contains(whole, ',')) OVER column_of AS unmarked,
        if(unmarked, format('{:,}', try_cast(whole AS BIGINT)), whole) AS marked,
        rpad(decimals, greatest(usual, places)::INTEGER, '0') AS padded
    FROM figures
    JOIN usual USING (document_id, table_name, column_name)
    WINDOW column_of AS (PARTITION BY document_id, table_name, column_name)
)
SELECT
    result_id, column_name, 'info' AS severity,
    concat_ws(
        '; ',
        CASE WHEN short THEN format(
            '{} has {} of the column''s usual {} decimals: a trailing zero is lost',
            raw_text, places, usual
        ) END,
        CASE WHEN unmarked THEN format(
            '{} has no thousands mark, other figures of the column have one', raw_text
        ) END
    ) AS message,
    concat_ws('.', marked, nullif(padded, '')) AS suggested
FROM judged
WHERE short OR unmarked
