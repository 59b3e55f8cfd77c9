-- Little's law: throughput × latency is what is in flight. Less than one batch is impossible, but
-- for the rounding of printed figures. More than 16 are twice the most that a row of the record
-- implies (8.04, STC P920). Where a latency is stated to be that of one batch there can be
-- time outside the batches, but not nearly all of it. A factor that fits asks about the mistake.
WITH flights AS (
    SELECT
        *, latency_basis IS NOT DISTINCT FROM 'per-item' AS is_of_item,
        if(is_of_item, 1, batch_size * parts) AS batch
    FROM ours
),
depths AS (
    SELECT
        *, throughput * latency_ms / 1000 / batch AS depth,
        is_of_item OR coalesce(latency_basis = 'per-batch' OR latency_kind = 'isolated', FALSE)
            AS is_stated,
        {MAX_BATCHES_IN_FLIGHT} * if(is_of_item, coalesce(batch_size, 1), 1) AS deepest,
        -- tokens that each sequence of the batch gets, where its length is not known
        if(item = 'token' AND parts IS NULL, throughput * latency_ms / 1000 / batch_size, NULL)
            AS tokens
    FROM flights
),
repairs AS (
    SELECT
        *,
        list_sort(list_filter([
            {'off': abs(ln(depth * 1000)), 'times': 1000,
                'question': 'is the latency in seconds? State latency_ms in milliseconds'},
            {'off': abs(ln(depth * batch)), 'times': if(batch > 1, batch, NULL),
                'question':
                    'is the throughput in batches per second, or the latency that of an item?'},
            {'off': abs(ln(depth * chip_count)), 'times': if(chip_count > 1, chip_count, NULL),
                'question': 'is the throughput that of one chip?'}
        ], lambda own: depth * own.times
            BETWEEN {MIN_BATCHES_IN_FLIGHT} / 2 AND {MAX_BATCHES_IN_FLIGHT}
        ))[:2] AS fits
    FROM depths
),
judged AS (
    SELECT
        *,
        coalesce('; ' || nullif(array_to_string(list_transform(
            fits, lambda own: format('{} times fits: {}', format_plain(own.times), own.question)
        ), '; or '), ''), '') AS hint,
        CASE
            WHEN tokens > {MAX_BATCHES_IN_FLIGHT} THEN 'answers'
            WHEN depth IS NULL THEN 'missing'
            WHEN depth > deepest THEN 'too many'
            WHEN is_stated AND depth < {WRONG_BATCHES_IN_FLIGHT} THEN 'no batch'
            WHEN is_stated AND batch > 1 AND depth * batch BETWEEN 0.99 AND 1.01 THEN 'reciprocal'
            WHEN is_stated AND depth < {DOUBTFUL_BATCHES_IN_FLIGHT} THEN 'idle'
            WHEN is_stated AND depth < {MIN_BATCHES_IN_FLIGHT} THEN 'outside'
            -- one on each chip, of rows that state one alone: a convention
            WHEN is_stated AND NOT is_of_item AND chip_count > 1
                AND depth BETWEEN 0.9 * chip_count AND 1.2 * chip_count THEN 'on each chip'
            WHEN depth >= {MIN_BATCHES_IN_FLIGHT} THEN 'ok'
            ELSE 'short'
        END AS kind
    FROM repairs
)
SELECT
    run, 1 AS position, 'Little''s law' AS name,
    CASE
        WHEN kind = 'missing' THEN 'not checked'
        WHEN kind IN ('ok', 'outside') THEN 'ok'
        WHEN kind IN ('too many', 'idle', 'reciprocal', 'on each chip', 'answers') THEN 'doubtful'
        ELSE 'impossible'
    END AS outcome,
    coalesce(format(
        '{} {} in flight: {:.12g} × {:.12g} ms{}', format_plain(coalesce(depth, tokens)),
        if(is_of_item, 'items', 'batches'), throughput, latency_ms,
        if(is_of_item, '', format(' / batch {}', batch))
    ), 'needs ') || CASE kind
        WHEN 'missing' THEN concat_ws(
            ', ', if(throughput IS NULL, 'throughput', NULL),
            if(latency_ms IS NULL, 'latency_ms', NULL), if(batch_size IS NULL, 'batch_size', NULL),
            if(parts IS NULL, 'sequence_length', NULL)
        )
        WHEN 'ok' THEN ''
        WHEN 'too many' THEN format(
            '; more than {MAX_BATCHES_IN_FLIGHT}; is the latency in ms, and that of one batch?{}',
            if(depth / 1000 BETWEEN {MIN_BATCHES_IN_FLIGHT} AND {MAX_BATCHES_IN_FLIGHT},
                ' 1/1000 of it fits: is it in microseconds?', '')
            || if(chip_count > 1 AND depth / chip_count <= {MAX_BATCHES_IN_FLIGHT},
                format('; or is {} the micro-batch or the batch of one chip?', batch_size), '')
        )
        WHEN 'on each chip' THEN format(
            '; the latency is stated to be that of one batch alone, and there is one for each of {}'
            ' chips: is {} the micro-batch or the batch of one chip, or are several in flight?'
            ' State latency_basis', chip_count, batch_size
        )
        WHEN 'answers' THEN format(
            '; each sequence of the batch gets {} tokens in one latency: is it that of the whole'
            ' answer, and not of one batch of tokens?', format_plain(tokens)
        )
        WHEN 'reciprocal' THEN
            '; the latency is one over the throughput: is it that of an item (latency_basis per-item)?'
        WHEN 'outside' THEN '; the throughput counts time outside the batches'
        WHEN 'short' THEN format(
            '; a batch takes at least {} ms at this throughput{}{}',
            format_plain(batch / throughput * 1000, digits := 4), if(batch > 1 AND hint = '',
                '; is the latency that of an item (latency_basis per-item)?', ''),
            hint
        )
        ELSE format(
            '; the machine would be idle for {} of the time{}', format_share(1 - depth, 3), hint
        )
    END AS message,
    coalesce(depth, tokens) AS value,
    CASE
        WHEN kind IN ('too many', 'answers') THEN {MAX_BATCHES_IN_FLIGHT}
        WHEN kind <> 'missing' THEN {MIN_BATCHES_IN_FLIGHT}
    END AS "limit"
FROM judged
