-- The interval of the ratio of `$figure`, and in what two rows differ, of which one is run 1 and the
-- other is nearest to it.
SELECT
    f.low, f.high,
    list_transform(
        coalesce(d.differences, []), lambda each: differ(each.what, each.ours, each.theirs)
    ) AS what_differs
FROM nearest n
JOIN shared_figures f USING (run, result_id)
LEFT JOIN differences d USING (run)
WHERE f.figure = $figure
