WITH totals AS (
    SELECT *, CASE WHEN parties LIKE 'vendor and %' THEN 'vendor and others' ELSE 'two others' END AS total
    FROM replications
),
groups_of_parties AS (
    SELECT * REPLACE (grouped AS parties)
    FROM (SELECT *, unnest([total, parties]) AS grouped FROM totals)
),
groups AS (  -- all pairs, and those with each part of the vendor
    SELECT * REPLACE (part AS vendor_part)
    FROM (SELECT *, unnest(list_distinct(['all', coalesce(vendor_part, 'all')])) AS part FROM groups_of_parties)
),
quantiles AS (  -- Student's t, 95 % two-sided, by degrees of freedom; beyond them by the expansion of Cornish and Fisher
    SELECT unnest(range(1, 31)) AS df, unnest([
        12.7062047362, 4.3026527297, 3.1824463053, 2.7764451052, 2.5705818356, 2.4469118511, 2.3646242516, 2.3060041352,
        2.2621571629, 2.2281388520, 2.2009851601, 2.1788128297, 2.1603686565, 2.1447866879, 2.1314495456, 2.1199052992,
        2.1098155778, 2.1009220402, 2.0930240544, 2.0859634473, 2.0796138447, 2.0738730679, 2.0686576104, 2.0638985616,
        2.0595385528, 2.0555294386, 2.0518305165, 2.0484071418, 2.0452296421, 2.0422724563
    ]) AS t
),
works AS (  -- pairs of one work on one number of chips count once
    SELECT
        parties, machines, vendor_part, measure, work, task, test, chip, chip_count,
        first_publisher, second_publisher,
        list_aggregate(list(ln(ratio) ORDER BY ratio) FILTER (counts), 'avg') AS log_ratio
    FROM groups
    GROUP BY ALL
),
summary AS (
    SELECT
        parties, machines, vendor_part, len(ratios) AS works, len([x FOR x IN ratios IF abs(exp(x) - 1) <= 0.05]) AS works_within_5,
        list_aggregate(ratios, 'avg') AS mean,
        list_aggregate(ratios, 'stddev_samp') AS deviation, list_aggregate(ratios, 'median') AS middle
    FROM (  -- in order, so that sums have the same last bits in every build
        SELECT parties, machines, vendor_part, list(log_ratio ORDER BY log_ratio) FILTER (log_ratio IS NOT NULL) AS ratios
        FROM works
        GROUP BY parties, machines, vendor_part
    )
),
pairs AS (
    SELECT
        parties, machines, vendor_part, count(*) AS pairs, count(*) FILTER (counts) AS counted,
        count(*) FILTER (counts AND abs(ratio - 1) <= 0.05) AS within_5_percent,
        min(ratio) FILTER (counts) AS lowest_ratio, max(ratio) FILTER (counts) AS highest_ratio
    FROM groups
    GROUP BY parties, machines, vendor_part
),
errors AS (
    SELECT
        s.*, 1.959963984540054 AS z,
        coalesce(
            q.t,
            CASE WHEN works > 31 THEN
                z + (z ** 3 + z) / (4 * (works - 1)) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * (works - 1) ** 2)
                + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * (works - 1) ** 3)
            END
        ) * deviation / sqrt(works) AS half_width
    FROM summary s
    LEFT JOIN quantiles q ON q.df = s.works - 1
)
SELECT
    p.machines, p.parties, p.vendor_part, p.pairs, p.counted, p.within_5_percent, e.works, e.works_within_5 AS works_within_5_percent, exp(e.mean) AS mean_ratio,
    exp(e.mean - e.half_width) AS mean_low, exp(e.mean + e.half_width) AS mean_high,
    exp(e.middle) AS median_ratio, p.lowest_ratio, p.highest_ratio
FROM pairs p
JOIN errors e USING (parties, machines, vendor_part)
