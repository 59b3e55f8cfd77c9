-- The runs of the user.
SELECT * EXCLUDE (result_id, place) FROM sides WHERE run IS NOT NULL
