-- Where two names share no test: why not, for the model that is asked for or each that both have.
WITH models AS (
    SELECT model, bool_or(is_a) AS has_a, bool_or(is_b) AS has_b
    FROM rows
    WHERE (is_a OR is_b) AND model IS NOT NULL
    GROUP BY model
),
asked_models AS (
    SELECT c.a, c.b, m.model, m.has_a, m.has_b
    FROM chosen c
    JOIN models m ON m.has_a AND m.has_b OR m.model = c.model
    WHERE c.a <> c.b AND coalesce(m.model = c.model, TRUE)
        AND NOT EXISTS (FROM pairs WHERE NOT is_like)
),
counts AS (
    SELECT
        model, measure, title, position, name, is_a, count(figure) AS figures,
        count(*) FILTER (comparable) AS comparable
    FROM rows
    WHERE is_a OR is_b
    GROUP BY ALL
),
nearest AS (  -- the rows of a model and measure that disagree in the fewest columns of the test
    SELECT
        l.model, l.measure,
        [
            {
                'name': name, 'left': own.conditions[name], 'right': other.conditions[name]
            }
            FOR name IN l.columns
            IF own.conditions[name] IS DISTINCT FROM other.conditions[name]
        ] AS failed
    FROM asked_models
    JOIN rows l USING (model)
    JOIN rows r ON r.model = l.model AND r.measure = l.measure
    JOIN texts own ON own.result_id = l.result_id
    JOIN texts other ON other.result_id = r.result_id
    WHERE l.is_a AND r.is_b AND l.comparable AND r.comparable
    QUALIFY row_number() OVER (
        PARTITION BY l.model, l.measure ORDER BY len(failed), l.place, r.place
    ) = 1
),
reasons AS (
    SELECT
        l.model, l.position, coalesce(len(n.failed), 0) AS failed_count,
        CASE
            WHEN l.comparable = 0 OR r.comparable = 0
                THEN format(
                    '{}: no row of {} may be ranked and measures a batch', l.title,
                    if(l.comparable = 0, l.name, r.name)
                )
            ELSE format('{}: {}', l.title, array_to_string([
                format(
                    '{} is {} / {}',
                    CASE each.name
                        WHEN 'latency_basis' THEN 'what the latency times'
                        WHEN 'batch_size' THEN 'batch'
                        ELSE replace(each.name, '_', ' ')
                    END,
                    coalesce(each.left, 'not stated'), coalesce(each.right, 'not stated')
                )
                FOR each IN n.failed
            ], ', '))
        END AS reason
    FROM counts l
    JOIN counts r ON r.model = l.model AND r.measure = l.measure AND NOT r.is_a
    LEFT JOIN nearest n ON n.model = l.model AND n.measure = l.measure
    WHERE l.is_a AND l.figures > 0 AND r.figures > 0
),
explained AS (
    SELECT model, string_agg(reason, '; ' ORDER BY failed_count, position) AS reason
    FROM reasons
    GROUP BY model
),
kinds AS (  -- of figures, by model
    SELECT model, is_a, coalesce(
        string_agg(title, ' and ' ORDER BY position) FILTER (figures > 0), 'none'
    ) AS titles
    FROM counts
    GROUP BY ALL
)
SELECT
    m.model,
    CASE
        WHEN NOT m.has_a THEN format('no row of {} on {}', m.model, m.a)
        WHEN NOT m.has_b THEN format('no row of {} on {}', m.model, m.b)
        ELSE coalesce(
            e.reason, format('no kind of figure in common: {} / {}', own.titles, other.titles)
        )
    END AS reason
FROM asked_models m
LEFT JOIN explained e USING (model)
LEFT JOIN kinds own ON own.model = m.model AND own.is_a
LEFT JOIN kinds other ON other.model = m.model AND NOT other.is_a
