-- Whether the figures of a run are possible: what no chip can reach is `impossible`, what leaves
-- nearly all of the machine idle `doubtful`.
FROM littles_law
UNION ALL BY NAME FROM peak_checks
UNION ALL BY NAME FROM power_checks
UNION ALL BY NAME FROM slips
UNION ALL BY NAME FROM twins
