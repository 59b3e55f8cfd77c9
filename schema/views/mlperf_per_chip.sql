SELECT
    benchmark, comparable_rounds, division, availability,
    round, submitter, system, accelerator, accelerators, framework, minutes,
    minutes * accelerators AS accelerator_minutes,
    mlperf_id, mlperf_id_confidence, path,
    attribution || '; accelerator minutes are not an MLPerf metric' AS attribution
FROM mlperf_entries
WHERE minutes IS NOT NULL AND accelerators > 0
ORDER BY benchmark, comparable_rounds, division, availability, accelerator_minutes, path
