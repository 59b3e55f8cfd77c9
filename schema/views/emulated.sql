SELECT *
FROM record
WHERE origin = 'emulated'
