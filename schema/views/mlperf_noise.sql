WITH neighbours AS (
    SELECT
        ranking,  -- sums in order have the same last bits everywhere
        list_sum(list(wrong_order_probability ORDER BY wrong_order_probability)) AS wrong_orders,
        count(p_value) FILTER (same_machine) AS same_machine_pairs,
        count(*) FILTER (same_machine AND p_value < 0.05) AS same_machine_separable_pairs,
        count(speed_p_value) FILTER (scope = 'same-size') AS speed_pairs,
        count(*) FILTER (scope = 'same-size' AND speed_p_value < 0.05) AS speed_separable_pairs
    FROM mlperf_ranking
    GROUP BY ranking
),
every AS (
    SELECT
        unnest([(round, benchmark, division, 'all-sizes'), (round, benchmark, division, 'same-size')]) AS ranked,
        unnest([count(p_value), count(p_value) FILTER (same_size)]) AS all_pairs,
        unnest([
            count(*) FILTER (p_value < 0.05),
            count(*) FILTER (p_value < 0.05 AND same_size)
        ]) AS all_separable_pairs
    FROM detail.mlperf_pairs
    GROUP BY round, benchmark, division
)
SELECT
    round, benchmark, division, scope,
    count(*) AS rankings, sum(entries)::BIGINT AS entries, sum(measurements)::BIGINT AS measurements,
    sum(unscored)::BIGINT AS unscored,
    sum(neighbouring_pairs)::BIGINT AS neighbouring_pairs,
    sum(shared_log_pairs)::BIGINT AS shared_log_pairs, sum(untested_pairs)::BIGINT AS untested_pairs,
    (sum(neighbouring_pairs) - sum(shared_log_pairs) - sum(untested_pairs))::BIGINT AS tested_pairs,
    sum(separable_pairs)::BIGINT AS separable_pairs,
    sum(separable_pairs_corrected)::BIGINT AS separable_pairs_corrected,
    100 * (1 - sum(separable_pairs) / nullif(tested_pairs, 0)) AS noise_percent,
    100 * list_sum(list(wrong_orders ORDER BY wrong_orders)) / nullif(tested_pairs, 0) AS wrong_order_percent,
    coalesce(any_value(all_pairs), 0) AS all_pairs, coalesce(any_value(all_separable_pairs), 0) AS all_separable_pairs,
    sum(same_machine_pairs)::BIGINT AS same_machine_pairs,
    sum(same_machine_separable_pairs)::BIGINT AS same_machine_separable_pairs,
    sum(speed_pairs)::BIGINT AS speed_pairs, sum(speed_separable_pairs)::BIGINT AS speed_separable_pairs
FROM detail.rank_resolution
JOIN neighbours USING (ranking)
LEFT JOIN every ON every.ranked = (round, benchmark, division, scope)
GROUP BY round, benchmark, division, scope
ORDER BY string_split(round, '.')::BIGINT[], benchmark, division, scope
