-- Why a row may not be compared with a run: the rules that the two break, in this order. The first
-- is the reason that is given; `by_rule` has null for each rule that holds. Rules of one figure are
-- in `shared_figures`.
WITH judged AS (
    SELECT m.run, r.result_id, [
        CASE WHEN m.task <> r.task THEN
            refuse('task', 'different-tasks',
                format('{} may not be compared with {}', r.task, m.task))
        END,
        CASE WHEN m.run_id = r.run_id THEN
            refuse('run_id', 'same-measurement', 'the row is of the same run')
        END,
        -- MLCommons: within a benchmark, a division, and the rounds that it lists as comparable
        CASE
            WHEN coalesce('mlperf-training' NOT IN (m.benchmark, r.benchmark), TRUE) THEN NULL
            WHEN m.benchmark IS NULL AND m.minutes IS NOT NULL THEN
                refuse('benchmark', 'mlperf-with-other',
                    'minutes are MLPerf scores: state benchmark mlperf-training, division and'
                    ' mlperf_round', has_next_step := TRUE)
            WHEN m.benchmark IS DISTINCT FROM r.benchmark THEN
                refuse('benchmark', 'mlperf-with-other',
                    'an MLPerf result may be compared with results of the same MLPerf benchmark'
                    ' only (MLCommons'' rule)')
        END,
        CASE
            WHEN NOT is_mlperf(m.benchmark, r.benchmark) THEN NULL
            WHEN m.division IS NULL OR m.mlperf_round IS NULL THEN
                refuse('division', 'mlperf-divisions',
                    'the division or the round of your MLPerf run is not stated (division,'
                    ' mlperf_round)', has_next_step := TRUE)
            WHEN m.division IS DISTINCT FROM r.division THEN
                refuse('division', 'mlperf-divisions',
                    differ('MLPerf division', m.division, r.division))
        END,
        CASE WHEN is_mlperf(m.benchmark, r.benchmark) AND NOT is_round_within(
            m.mlperf_round, coalesce(r.comparable_rounds, r.mlperf_round)
        ) THEN
            refuse('mlperf_round', 'mlperf-rounds',
                'MLCommons lists the two rounds of the benchmark as not comparable')
        END,
        CASE WHEN r.errors > 0 THEN
            refuse('errors', 'flagged', 'a quality rule flags the row as an error')
        END,
        CASE WHEN r.suspect <> '' THEN
            refuse('suspect', 'flagged', 'the row is marked as suspect')
        END,
        CASE WHEN m.phase IS DISTINCT FROM r.phase THEN
            refuse('phase', 'different-workloads', differ('phase', m.phase, r.phase))
        END,
        CASE WHEN m.sequence_length IS DISTINCT FROM r.sequence_length THEN
            refuse('sequence_length', 'different-workloads',
                differ('sequence length', m.sequence_length, r.sequence_length))
        END,
        -- a source that packs says so
        CASE WHEN coalesce(m.packed, FALSE) <> coalesce(r.packed, FALSE) THEN
            refuse('packed', 'different-workloads',
                differ('packed sequences', name_flag(m.packed), name_flag(r.packed)))
        END,
        CASE WHEN m.sparsity IS DISTINCT FROM r.sparsity THEN
            refuse('sparsity', 'different-workloads',
                differ('sparsity', m.sparsity, r.sparsity, blank := 'dense'))
        END,
        -- most sources do not print it
        CASE WHEN m.input_size <> r.input_size THEN
            refuse('input_size', 'different-workloads',
                differ('input size', m.input_size, r.input_size))
        END,
        -- beyond a factor of 2, throughput and latency follow the batch more than the machine
        CASE
            WHEN m.task <> 'inference' OR r.batch_size IS NULL THEN NULL
            WHEN m.batch_size IS NULL THEN
                refuse('batch_size', 'different-batch-sizes',
                    'your batch size is not stated (batch_size)')
            WHEN greatest(m.batch_size / r.batch_size, r.batch_size / m.batch_size)
                > {max_batch_factor} THEN
                refuse('batch_size', 'different-batch-sizes',
                    'the batch sizes differ by more than a factor of {max_batch_factor}')
        END
    ] AS by_rule
    FROM ours m
    JOIN theirs r USING (model)
)
SELECT
    run, result_id, by_rule,
    list_filter(by_rule, lambda obstacle: obstacle IS NOT NULL) AS obstacles
FROM judged
