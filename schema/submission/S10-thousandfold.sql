-- A figure that is about 1000 or 1,000,000 times that of the nearest row of its chip or machine, or
-- such a part of it; the nearest row may itself be off by half a power of ten.
SELECT
    'unit' AS reason, locate_row(m.row_number) AS place,
    format(
        '{} is {:.3g} times that of the nearest row ({}, {}{}, result {}): is the unit right (ms'
        ' for s or µs)?', r.figure, factor, c.publisher, c.platform,
        coalesce(format(', batch {}', c.batch_size), ''), c.result_id
    ) AS message
FROM (SELECT *, coalesce(per_chip, ratio) AS factor FROM ratios) r
JOIN nearest n ON (n.run, n.position) = (r.run, r.match)
JOIN candidates c ON c.result_id = n.result_id
JOIN mine m ON m.run = r.run
WHERE r.is_evidence
    AND (c.chip = m.chip OR c.platform = m.platform)
    AND is_thousandfold(factor, 0.5)
QUALIFY row_number() OVER (PARTITION BY r.run ORDER BY r.match, r.position) = 1
