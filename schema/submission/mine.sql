-- The rows of the hand-in as the runs of a comparison. A model that the record prints in one way or
-- another has the name of the record, if that is one. All chips of a known machine took part,
-- unless a row says otherwise.
WITH named AS (
    SELECT normalise_name(model_printed) AS name, any_value(model) AS model
    FROM results
    GROUP BY name
    HAVING count(DISTINCT model) = 1
)
SELECT
    m.* REPLACE (
        coalesce(named.model, m.model) AS model, coalesce(m.chip, p.chip) AS chip,
        coalesce(m.chip_count, p.chip_count) AS chip_count
    )
FROM handed_in m
LEFT JOIN named ON named.name = normalise_name(m.model)
LEFT JOIN platforms p USING (platform)
