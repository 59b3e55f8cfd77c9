-- The figures of `tested` of what is compared, and whether each is of the first name, of the
-- second, and of the model that is asked for.
SELECT
    t.*, t.name = c.a AS is_a, t.name = c.b AS is_b,
    c.model IS NULL OR t.model = c.model AS is_asked
FROM tested t
JOIN chosen c USING (compared)
