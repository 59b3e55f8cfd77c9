-- Job 3914 of CARAML's README: the power that the energy of a GH200 implies over 25 iterations, over the 30 minutes of the job
-- and over one hour, in W.
WITH energies AS (
    SELECT r.result_id, f.value AS joules, r.conditions
    FROM results AS r
    JOIN figures AS f ON f.result_id = r.result_id AND f.metric = 'run_energy_j'
    WHERE r.document_id = 'independent-caraml-readme' AND contains(r.conditions, 'job 3914')
),
bounds AS (
    SELECT
        min(joules) AS least, max(joules) AS most, list('results:' || result_id ORDER BY result_id) AS inputs,
        max(CAST(regexp_extract(conditions, 'step of ([\d.]+) s', 1) AS DOUBLE)) AS step
    FROM energies
)
SELECT
    most / seconds AS value,
    during AS baseline,
    printf('%.1f and %.1f Wh / %.0f s = %.0f and %.0f W', least / 3600, most / 3600, seconds, least / seconds, most / seconds)
        AS arithmetic,
    inputs,
    NULL::VARCHAR AS relation
FROM bounds, (VALUES
    (1, '25 iterations', 25 * step), (2, 'job time of 30 min', 1800.0), (3, 'one hour', 3600.0)
) AS spans (place, during, seconds)
ORDER BY place
