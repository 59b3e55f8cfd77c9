-- What the statements of this folder share.

-- FP16 and BF16 have one peak on every chip that states both: what the products take in is as wide.
CREATE OR REPLACE MACRO name_width(type) AS
    CASE WHEN type IN ('fp16', 'bf16') THEN '16 bits' ELSE type END;

-- The bits of a type that products take in. The fewer they are, the more operations a chip does.
CREATE OR REPLACE MACRO count_bits(type) AS CASE
    WHEN type IN ('fp4', 'int4') THEN 4
    WHEN type IN ('fp8', 'int8') THEN 8
    WHEN type IN ('fp16', 'bf16') THEN 16
    WHEN type = 'tf32' THEN 19
    WHEN type = 'fp32' THEN 32
END;

-- A reason for not comparing: the column that decides, a code for programs, words, and whether the
-- user can state what is missing.
CREATE OR REPLACE MACRO refuse(column_name, code, reason, has_next_step := FALSE) AS
    {'column_name': column_name, 'code': code, 'reason': reason, 'has_next_step': has_next_step};

CREATE OR REPLACE MACRO differ(what, ours, theirs, blank := 'not stated') AS
    format(
        '{}: {} / {}', what, coalesce(ours::VARCHAR, blank), coalesce(theirs::VARCHAR, blank)
    );

-- Whether two latencies may time the same. An unknown one may be of a batch, but not of an item.
CREATE OR REPLACE MACRO is_same_latency(ours, theirs) AS
    CASE
        WHEN ours IS NOT DISTINCT FROM theirs THEN TRUE
        WHEN 'per-item' IN (ours, theirs) THEN FALSE
        WHEN ours IS NULL OR theirs IS NULL THEN TRUE
        ELSE 'per-batch' IN (ours, theirs)
            AND ('isolated' IN (ours, theirs) OR 'amortised' IN (ours, theirs))
    END;

-- The unit of a figure as a reader writes it.
CREATE OR REPLACE MACRO name_unit(figure, item) AS
    CASE figure
        WHEN 'throughput' THEN format('{}s/s', coalesce(item, 'item'))
        WHEN 'efficiency' THEN format('{}s/s/W', coalesce(item, 'item'))
        WHEN 'latency_ms' THEN 'ms'
        WHEN 'minutes' THEN 'min'
        ELSE 'W'
    END;

-- Whether both are results of MLPerf Training.
CREATE OR REPLACE MACRO is_mlperf(ours, theirs) AS
    coalesce(ours = 'mlperf-training' AND theirs = 'mlperf-training', FALSE);

-- Whether a round is within a span such as 1.0-2.1, both ends included.
CREATE OR REPLACE MACRO is_round_within(round, span) AS
    coalesce(
        order_round(round) BETWEEN order_round(split_part(span, '-', 1))
            AND order_round(string_split(span, '-')[-1]),
        FALSE
    );

CREATE OR REPLACE MACRO name_flag(flag) AS
    CASE flag WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' END;

-- How often one number must be doubled to reach the other.
CREATE OR REPLACE MACRO count_doublings(ours, theirs) AS abs(log2(ours / theirs));

-- A mistake that makes a figure `top` / `bottom` of what it should be, and the question about it.
CREATE OR REPLACE MACRO mistake(figure, top, bottom, question) AS
    {'figure': figure, 'top': top, 'bottom': bottom, 'question': question};

-- Of tokens in sequences of a length that is usual, where none is stated.
CREATE OR REPLACE MACRO of_usual_length(length, item, stated) AS
    mistake('throughput', 1, if(item = 'token' AND stated IS NULL, length, 1),
        format('is it in sequences, of {} tokens each?', length));

CREATE OR REPLACE MACRO of_one_chip(figure, machine, chips) AS
    mistake(figure, 1, chips,
        format('and {} has {} chips: is it the figure of one chip?', machine, chips));

-- Of as many chips as the systems have that are sold.
CREATE OR REPLACE MACRO of_several_chips(several, chips) AS
    mistake('throughput', several, 1,
        format('is it the figure of {} chips? State chip_count', several * chips));

-- Of a part of the machine that one process drives.
CREATE OR REPLACE MACRO of_one_host(parts, chips) AS
    mistake('throughput', 1, if(chips % parts = 0 AND parts < chips, parts, 1),
        format('is it the figure of {} of {} chips, such as those of one host?', chips // parts,
            chips));

-- All but the emulated are measured, by whoever.
CREATE OR REPLACE MACRO name_origin(origin) AS
    if(origin = 'emulated', 'emulated, not measured', 'measured');

CREATE OR REPLACE MACRO write_figure(name, value, item) AS
    format('{} {:.12g} {}', name, value, name_unit(name, item));
