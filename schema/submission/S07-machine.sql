-- More chips than the machine has, of which a part may be used, or another chip than it has. A name
-- of a chip may say less than another: A100-40GB of A100-SXM-40GB.
WITH named AS (
    SELECT
        m.row_number, platform, m.chip, p.chip AS theirs, m.chip_count, p.chip_count AS most,
        string_split_regex(m.chip, '[ -]') AS words, string_split_regex(p.chip, '[ -]') AS known
    FROM mine m
    JOIN platforms p USING (platform)
)
SELECT
    'contradiction' AS reason, locate_row(row_number) AS place,
    if(
        chip_count > most,
        format(
            'chip_count is {}, but {} has {} chips; name the larger machine', chip_count, platform,
            most
        ),
        format('chip is {}, but {} has {}', chip, platform, theirs)
    ) AS message
FROM named
WHERE chip_count > most
    OR chip IN (SELECT chip FROM platforms)
    AND NOT (list_has_all(words, known) OR list_has_all(known, words))
