-- The mistakes that explain how far a run is from a nearest row: those whose factor is near the
-- ratio, the nearest two. `elsewhere` is seen from another machine or precision: there a factor may
-- be further off, and from what the peaks of both lead to expect. The limits are conventions.
WITH compared AS (
    SELECT run, match, figure, FALSE AS elsewhere, factor, 1.35 AS near FROM ratios
    UNION ALL
    SELECT run, match, figure, TRUE, factor, near FROM speeds WHERE speed < slowest
),
near AS (
    SELECT
        c.run, c.match, c.elsewhere, c.figure, k.what, k.question, k.position,
        abs(ln(c.factor / k.factor)) AS off
    FROM compared c
    JOIN mistakes k USING (run, figure)
    -- the larger a factor, the fewer there are that may be meant
    WHERE off <= greatest(ln(c.near), abs(ln(c.factor)) / 8)
),
questions AS (  -- by factor: 1/16 may be the batch or the chips
    SELECT
        run, match, elsewhere, figure, what, min(off) AS least_off, min(position) AS place,
        regexp_replace(
            string_agg(question, '; or ' ORDER BY position), '; or and ', '; or ', 'g'
        ) AS text
    FROM near
    GROUP BY run, match, elsewhere, figure, what
    QUALIFY row_number() OVER (
        PARTITION BY run, match, elsewhere, figure ORDER BY least_off, place
    ) <= 2
)
SELECT
    run, match, elsewhere, figure,
    string_agg(format(
        'this is about {} {} the nearest row{} {}', what,
        if(starts_with(what, '1/'), 'of', 'times'), if(starts_with(text, 'and'), ',', ':'), text
    ), '; or ' ORDER BY least_off, place) AS text
FROM questions
GROUP BY ALL
