-- The rows that the hand-in would publish, each with what a comparison says of it and the nearest
-- rows of the record. `remarks` are of nearest rows that the verdict does not name.
SELECT
    own AS row,
    coalesce(throughput, latency_ms, minutes, efficiency, power_w) IS NOT NULL AS has_figure,
    format('{}row {}{}', if(has_figure, 'results.csv, ', ''), row_number,
        if(has_figure, ': ' || answer.description, '')) AS description,
    if(has_figure, verdict, 'no figure that a comparison knows') AS verdict,
    [
        {
            'result_id': near.row.result_id, 'document_id': near.row.document_id,
            'publisher': near.row.publisher, 'relationship': near.row.relationship,
            'platform': near.row.platform, 'batch_size': near.row.batch_size,
            'ratios': map_from_entries([(each.figure, each.ratio) FOR each IN near.ratios]),
            'distance': near.distance
        } FOR near IN matches
    ] AS nearest,
    [near.description FOR near IN matches IF NOT contains(verdict, near.description)] AS remarks
FROM handed_in own
JOIN answer USING (run)
ORDER BY run
