SELECT *
FROM results
WHERE origin = 'emulated'
