-- Most accelerators of an entry on IPUs in MLPerf Training 2.0.
SELECT
    accelerators::DOUBLE AS value, system || ', ' || benchmark || ', MLPerf Training ' || round AS baseline,
    printf('%d accelerators', accelerators) AS arithmetic, ['mlperf_entries:' || round || '/' || path] AS inputs
FROM mlperf_entries
WHERE round = '2.0' AND accelerator ILIKE '%ipu%'
QUALIFY accelerators = max(accelerators) OVER ()
ORDER BY path
