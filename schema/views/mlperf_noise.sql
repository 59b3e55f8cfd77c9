SELECT
    round, benchmark, division, scope,
    count(*) AS rankings, sum(entries)::BIGINT AS entries, sum(neighbouring_pairs)::BIGINT AS neighbouring_pairs,
    sum(shared_log_pairs)::BIGINT AS shared_log_pairs, sum(untested_pairs)::BIGINT AS untested_pairs,
    (sum(neighbouring_pairs) - sum(shared_log_pairs) - sum(untested_pairs))::BIGINT AS tested_pairs,
    sum(separable_pairs)::BIGINT AS separable_pairs,
    sum(separable_pairs_corrected)::BIGINT AS separable_pairs_corrected,
    100 * (1 - sum(separable_pairs) / nullif(tested_pairs, 0)) AS noise_percent
FROM rank_resolution
GROUP BY round, benchmark, division, scope
ORDER BY string_split(round, '.')::BIGINT[], benchmark, division, scope
