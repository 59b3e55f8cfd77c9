-- Power of the claim's card over that of one V100, in each form whose watts an MLPerf description of 2020 prints. The
-- A100 came after the document. SXM2 and SXM3 are modules, not cards.
SELECT
    p.rated_power_w / watts AS value,
    chip_printed AS baseline,
    printf('%g W / %g W = %.2f', p.rated_power_w, watts, p.rated_power_w / watts) AS arithmetic,
    ['platforms:' || p.platform, 'mlperf_entries:' || e.round || '/' || e.path] AS inputs,
    'one V100 for cards that the claim leaves unnamed' AS stand_in
FROM claim AS c
JOIN platforms AS p ON p.platform = c.subject
CROSS JOIN (
    SELECT chip_printed, round, min(path) AS path, regexp_extract(chip_printed, '\((\d+)W\)', 1)::DOUBLE AS watts
    FROM mlperf_entries
    WHERE round = '0.7' AND regexp_matches(chip_printed, 'V100.*\(\d+W\)')
    GROUP BY chip_printed, round
) AS e
ORDER BY watts, chip_printed
