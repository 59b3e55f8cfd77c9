-- Entries on IPUs by submitters other than Graphcore, in rounds before that of the claim's document.
SELECT
    CAST(count(*) FILTER (e.submitter <> 'Graphcore') AS DOUBLE) AS value,
    'MLPerf Training ' || string_agg(DISTINCT e.round, ', ' ORDER BY e.round) AS baseline,
    printf('%d entries on IPUs, all but %d by Graphcore', count(*), count(*) FILTER (e.submitter <> 'Graphcore'))
        AS arithmetic,
    list('mlperf_entries:' || e.round || '/' || e.path ORDER BY e.round, e.path) AS inputs
FROM claim AS c
JOIN mlperf_entries AS e
    ON e.chip_printed ILIKE '%IPU%' AND e.round < regexp_extract(c.document_id, 'v(\d+\.\d+)', 1)
HAVING count(*) > 0
