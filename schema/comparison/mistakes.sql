-- The mistakes that everybody makes, by the factor that they put on a figure of a run: seconds for
-- milliseconds, batches for items, one chip for the system. One whose factor comes to 1 is no
-- mistake.
WITH conditions AS (
    SELECT
        run, coalesce(batch_size, 1) AS batch, coalesce(chip_count, 1) AS chips,
        if(item = 'token', 1, coalesce(sequence_length, 1)) AS tokens,
        coalesce(platform, 'the machine') AS machine, item, sequence_length
    FROM ours
),
listed AS (
    SELECT run, [
        mistake('throughput', 1, 1000, 'is it in thousands of items per second?'),
        mistake('throughput', 1000, 1, 'is it items per 1000 seconds, or a latency?'),
        mistake('throughput', 60, 1, 'is it items per minute?'),
        mistake('throughput', 3600, 1, 'is it items per hour?'),
        mistake('throughput', 1, batch,
            format('and the batch is {}: is it batches per second?', batch)),
        mistake('throughput', batch, 1,
            format('and the batch is {}: is it multiplied by the batch twice?', batch)),
        mistake('throughput', tokens, 1,
            format('and a sequence has {} tokens: is it tokens per second?', tokens)),
        of_usual_length(512, item, sequence_length), of_usual_length(1024, item, sequence_length),
        of_usual_length(2048, item, sequence_length), of_usual_length(4096, item, sequence_length),
        of_several_chips(2, chips), of_several_chips(4, chips), of_several_chips(8, chips),
        of_several_chips(16, chips), of_several_chips(32, chips), of_several_chips(64, chips),
        of_one_chip('throughput', machine, chips),
        of_one_host(4, chips), of_one_host(8, chips), of_one_host(16, chips),
        mistake('latency_ms', 1, 1000, 'is it in seconds? State latency_ms in milliseconds'),
        mistake('latency_ms', 1000, 1, 'is it in microseconds? State latency_ms in milliseconds'),
        mistake('latency_ms', 1000000, 1, 'is it in nanoseconds? State latency_ms in milliseconds'),
        mistake('latency_ms', 1, batch, format(
            'and the batch is {}: is it the latency of an item? State latency_basis per-item', batch
        )),
        mistake('power_w', 1, 1000, 'is it in kilowatts? State power_w in watts'),
        mistake('power_w', 1000, 1, 'is it in milliwatts? State power_w in watts'),
        of_one_chip('power_w', machine, chips),
        mistake('efficiency', 1, 1000, 'is the power behind it in milliwatts?'),
        mistake('efficiency', 1000, 1, 'is it in milliwatts? State power_w in watts'),
        mistake('minutes', 1, 1000, 'is the unit right?'),
        mistake('minutes', 60, 1, 'is it in seconds? State minutes'),
        mistake('minutes', 1, 60, 'is it in hours? State minutes')
    ] AS mistakes
    FROM conditions
),
numbered AS (
    SELECT run, unnest(mistakes, recursive := TRUE), generate_subscripts(mistakes, 1) AS position
    FROM listed
)
SELECT *, top / bottom AS factor, if(bottom = 1, top::VARCHAR, '1/' || bottom) AS what
FROM numbered
WHERE top <> bottom
