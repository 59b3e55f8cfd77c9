-- What a visitor of the page compares: `compared` is platform or sdk_version, `a` and `b` are two
-- names of it, null for the one with the most tests, and `model` is null for all.
SELECT
    NULL::VARCHAR AS compared, NULL::VARCHAR AS a, NULL::VARCHAR AS b, NULL::VARCHAR AS model
WHERE FALSE
