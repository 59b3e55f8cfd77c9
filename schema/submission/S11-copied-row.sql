-- A row whose figures the record has. So many significant digits have to agree that no document of
-- the record has as many in common with another publisher by chance: 5 on one machine and batch, 6
-- of one model, 7 of any row, and 8 after rounding, a change of unit or a division by the chips.
WITH judged AS (
    SELECT
        c.*, m.row_number, r.origin, r.document_id, r.row_number AS their_row,
        r.model = m.model AND r.task = m.task AS is_same_work,
        CASE
            WHEN NOT is_same_work THEN if(is_exact, 7, 8)
            WHEN r.platform = m.platform AND r.batch_size IS NOT DISTINCT FROM m.batch_size THEN 5
            ELSE 6
        END AS enough,
        format(
            '{} ({}, result {}{})', r.publisher, r.document_id, r.result_id,
            if(r.model = m.model, '', format(', {} on {}', r.model, r.platform))
        ) AS whose
    FROM common c
    JOIN mine m USING (run)
    JOIN candidates r ON r.result_id = c.result_id
)
SELECT
    if(origin = 'emulated', 'emulated', 'copied') AS reason, locate_row(row_number) AS place,
    format(
        if(
            origin = 'emulated',
            '{}: the figure of the emulator, {}; hand in what was measured',
            '{}: the record has this figure from {}; hand in figures of your own'
        ), figures, whose
    ) AS message
FROM judged
WHERE digits >= enough
QUALIFY row_number() OVER (
    PARTITION BY run ORDER BY is_same_work DESC, document_id, their_row
) = 1
