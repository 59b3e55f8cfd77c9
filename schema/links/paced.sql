-- The entries whose speed can be compared, as `scored` has those with runs: by minutes per sample, none left out
-- and none normalised. How they converged does not matter.
SELECT place, speeds AS run_minutes, list_value('nan'::DOUBLE) AS counts, [0, 0] AS dropped, 0 AS reference, alike
FROM scored
WHERE speeds IS NOT NULL
