-- Most accelerators of an entry on IPUs in MLPerf Training 2.0.
SELECT
    chip_count::DOUBLE AS value, platform_printed || ', ' || benchmark || ', MLPerf Training ' || round AS baseline,
    printf('%d accelerators', chip_count) AS arithmetic, ['mlperf_entries:' || round || '/' || path] AS inputs
FROM mlperf_entries
WHERE round = '2.0' AND chip_printed ILIKE '%ipu%'
QUALIFY chip_count = max(chip_count) OVER ()
ORDER BY path
