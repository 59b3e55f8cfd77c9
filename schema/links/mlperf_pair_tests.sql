-- The table `mlperf_pair_tests`: the tested pairs with their p to three digits: the rest is arithmetic, and powers and logarithms have
-- other last bits on other processors. Within a ranking p is corrected for the number of tests by
-- Benjamini and Hochberg.
WITH rounded AS (
    SELECT
        p.* EXCLUDE (is_tested, has_speeds, shares_logs, one_batch),
        round_figure(t.p) AS p_value,
        round_figure(t.wrong_order) AS wrong_order_probability,
        t.test,
        round_figure(s.p) AS speed_p_value
    FROM pairs p
    JOIN p_values t USING (first, second)
    LEFT JOIN speed_p_values s USING (first, second)
),
expected AS (
    SELECT
        *,
        p_value * count(*) OVER (PARTITION BY family)
            / count(*) OVER (PARTITION BY family ORDER BY p_value) AS share
    FROM rounded
)
SELECT
    * EXCLUDE (share),
    CASE
        WHEN family IS NOT NULL
            THEN round_figure(least(1, min(share) OVER (PARTITION BY family ORDER BY p_value DESC)))
    END AS p_value_corrected
FROM expected
