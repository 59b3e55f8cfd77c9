-- The measures by which two machines, or two SDKs, are compared. Two figures of one belong to the
-- same test if they agree in all columns of `test`: a time to train is never compared with a
-- throughput, nor a latency with that of another batch or of another basis.
FROM (
    VALUES
        (
            1, 'throughput', 'throughput', TRUE,
            ['task', 'model', 'phase', 'sequence_length', 'sparsity', 'item']
        ),
        (
            2, 'latency_ms', 'latency', FALSE,
            [
                'task', 'model', 'sequence_length', 'sparsity', 'batch_size', 'latency_basis',
                'origin'
            ]
        ),
        (
            3, 'minutes', 'time to train', FALSE,
            ['task', 'model', 'phase', 'benchmark', 'division', 'dataset']
        )
) AS measures(position, measure, title, higher_is_better, test)
