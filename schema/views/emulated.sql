SELECT *
FROM detail.record
WHERE origin = 'emulated'
